// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut

/// What people do, and what is done to the gateway.
extension SimulatedLife {
  mutating func act() {
    let draw = random.below(100)
    if draw < chances.cut { return breakLink() }
    if draw < 10 + chances.hand { return moveByHand() }
    if draw < 22 + chances.power / 2 { return switchPower() }
    if random.chance(chances.restart), random.chance(30) { return kill() }
    if isJournalled, random.chance(chances.crash) { return kill() }
    if isJournalled, random.chance(chances.disk) { return disturbDisk() }
    if random.chance(chances.shutdown), random.chance(30) { return beginClosing() }
    if random.chance(chances.repetition), let token = pickLanded() {
      return agenda.plan(.stray(token), at: now.advanced(by: .milliseconds(random.below(100))))
    }
    switch random.below(20) {
    case 0: cancel()
    case 1: flush()
    default:
      change()
      // Fast hands, and several properties in one instant.
      while breach == nil, random.chance(35) { change() }
    }
  }

  private mutating func anyKey() -> KeyIndex {
    let count = registry.properties.count
    // The favourites differ from seed to seed.
    if random.chance(80) {
      return KeyIndex(Int32((Int(seed % 13) + random.below(chances.favourites)) % count))
    }
    return KeyIndex(Int32(random.below(count)))
  }

  private mutating func anyValue(of kind: ValueKind) -> Value {
    switch kind {
    case .number, .integer, .color:
      random.chance(30) ? .number(Double(random.below(4) * 30)) : .number(Double(random.below(101)))
    case .boolean: .boolean(random.chance(50))
    case .choice(let words), .action(let words): .text(words[random.below(words.count)])
    case .text: .text("text \(random.below(3))")
    }
  }

  private mutating func anyChange(of kind: ValueKind) -> CommandStateMachine.Change {
    switch kind {
    case .number, .integer:
      if random.chance(25) { return .step(Double(random.within(-20...20))) }
    case .boolean:
      if random.chance(40) { return .toggle }
    case .choice, .text, .color, .action: break
    }
    // Now and then something that the kind does not have.
    if random.chance(1) { return random.chance(50) ? .toggle : .step(1) }
    return .set(anyValue(of: kind))
  }

  mutating func change() {
    let key = anyKey()
    let change = anyChange(of: registry[key].property.kind)
    var terms = Model.Terms(caller: 0, skipsQuiet: random.chance(20))
    if !machine.isWatched || random.chance(70) {
      lastCaller += 1
      terms.caller = lastCaller
    }
    if terms.caller != 0, random.chance(15) { terms.ttl = .milliseconds(random.within(0...4000)) }
    let device = registry[key].device
    if registry.devices[device].options.contains("transition"), random.chance(20) {
      terms.transition = Double(random.within(1...3))
    }
    ask(change, of: key, terms)
  }

  /// Hands one change to the machine and to the model.
  mutating func ask(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    _ terms: Model.Terms
  ) {
    wake()
    guard breach == nil else { return }
    seen.changes += 1
    guard !isUnkept(change, of: key) else { return }
    if isTraced {
      note("\(name(key)) \(change), caller \(terms.caller), skips quiet \(terms.skipsQuiet)")
    }
    let foretold = model.change(change, of: key, terms, at: now)
    if foretold == nil, terms.caller != 0 { ledger.owes(terms.caller, ttl: terms.ttl) }
    var found: ValidationError?
    do throws(ValidationError) {
      try machine.change(
        change,
        of: key,
        at: now,
        origin: terms.caller == 0 ? nil : ChangeOrigin(replyTo: terms.caller),
        ttl: terms.ttl,
        options: terms.transition.map { [.init("transition", JSONValue(shortest: $0))] },
        skipsQuiet: terms.skipsQuiet
      )
    } catch {
      found = error
      seen.refusedChanges += 1
    }
    if found != foretold {
      return fail(
        "\(name(key)) \(change) was answered \(Self.text(found)), not \(Self.text(foretold))"
      )
    }
    agree("after a change")
  }

  private static func text(_ error: ValidationError?) -> String {
    error.map { "'\($0)'" } ?? "with yes"
  }

  private mutating func cancel() {
    wake()
    guard breach == nil else { return }
    let key = anyKey()
    if isTraced { note("\(name(key)) cancel") }
    let foretold = model.cancel(key)
    if machine.cancel(key, at: now) != foretold { fail("cancel of \(name(key)) answers wrongly") }
    agree("after a cancel")
  }

  private mutating func flush() {
    wake()
    guard breach == nil else { return }
    let key = anyKey()
    if isTraced { note("\(name(key)) flush") }
    let foretold = model.flush(Int(key.rawValue), at: now)
    if machine.flush(key, at: now) != foretold { fail("flush of \(name(key)) answers wrongly") }
    agree("after a flush")
  }

  // MARK: - At the device

  private mutating func moveByHand() {
    let key = anyKey()
    let property = registry[key].property
    guard property.state != nil else { return change() }
    let device = registry[key].device
    guard world.devices[device].isPowered else { return }
    let value = anyValue(of: property.kind)
    if isTraced { note("\(name(key)) by hand to \(value.bareText)") }
    world.values[Int(key.rawValue)] = value
    planReport(key, property.wireValue(of: value))
  }

  private mutating func switchPower() {
    let device = random.below(world.devices.count)
    if random.chance(40) {
      world.devices[device].isDeaf.toggle()
      if isTraced { note("device \(device) deaf: \(world.devices[device].isDeaf)") }
    } else {
      power(device, isOn: !world.devices[device].isPowered)
    }
  }

  // MARK: - The gateway's own end

  private mutating func pickLanded() -> UInt64? {
    landed.isEmpty ? nil : landed[random.below(landed.count)]
  }

  /// Asks the gateway to end in good order.
  private mutating func beginClosing() {
    guard closingUntil == nil else { return }
    wake()
    guard breach == nil else { return }
    if isTraced { note("the gateway shuts down") }
    seen.shutdowns += 1
    closingUntil = now.advanced(by: .seconds(10))
    machine.close(at: now)
    model.close(at: now)
    agree("after closing")
  }

  /// The shutdown is over when all has left, or its time has; the journal gets a moment of its own.
  mutating func endClosing() {
    guard breach == nil, let until = closingUntil else { return }
    if let keeping = keepingUntil {
      if memory.isIdle || keeping <= now { restart(after: .shutdown) }
      return
    }
    let isDrained = machine.isDrained && memory.withheld.isEmpty
    guard (model.isConnected && isDrained) || machine.unsentKeys().isEmpty || until <= now else {
      return
    }
    guard isJournalled else { return restart(after: .shutdown) }
    keepingUntil = now.advanced(by: .seconds(2))
    memory.flush(at: now)
  }

  private mutating func kill() {
    guard isJournalled, random.chance(40) else {
      if isTraced { note("the gateway is killed") }
      return restart(after: .killed)
    }
    if isTraced { note("the power is cut") }
    seen.powerCuts += 1
    let start = now.advanced(by: .milliseconds(random.within(0...40_000)))
    var clockSet = start
    if random.chance(20) {
      isTimeDoubtful = true
      clockSet = start.advanced(by: .seconds(random.within(1...90)))
    }
    restart(after: .powerCut(clockSet: clockSet), start: start)
  }

  /// A new machine, which knows what the memory kept.
  private mutating func restart(after end: GatewayEnd, start: Moment? = nil) {
    seen.restarts += 1
    news = []
    let found = memory.restart(after: end, at: now, start: start ?? now)
    promises.restart(found: found)
    now = start ?? now
    closingUntil = nil
    keepingUntil = nil
    machine = CommandStateMachine(registry: registry, settings: settings)
    machine.isWatched = model.isWatched
    machine.isJournalled = isJournalled
    model = Model(
      registry,
      settings,
      isWatched: model.isWatched,
      isJournalled: isJournalled
    )
    ledger.restart()
    outstanding = []
    landed = []
    loseLetters()
    agenda.plan(
      .reconnection(generation: world.generation),
      at: now.advanced(by: .milliseconds(random.within(1...3000)))
    )
    listen()
  }
}
