// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Values

/// Actions of users and operators.
extension SimulatedLife {
  func act() {
    if beginRule() { return }
    let draw = random.below(100)
    if draw < probabilities.cut { return breakLink() }
    if draw < 10 + probabilities.hand { return moveByHand() }
    if draw < 22 + probabilities.power / 2 { return switchPower() }
    if random.chance(probabilities.restart), random.chance(30) { return kill() }
    if isJournalled, random.chance(probabilities.crash) { return kill() }
    if isJournalled, random.chance(probabilities.disk) { return startDiskFault() }
    if random.chance(probabilities.shutdown), random.chance(30) { return beginClosing() }
    if random.chance(probabilities.repetition), let token = pickAnswered() {
      return agenda.plan(
        .duplicateAnswer(token),
        at: now.advanced(by: .milliseconds(random.below(100)))
      )
    }
    if random.chance(probabilities.reload) { return reload() }
    switch random.below(23) {
    case 0: cancel()
    case 1: flush()
    case 2, 3, 4:
      if hasLamps, groupRandom.chance(50) { groupedMessages() }
      routedMessages()
    default:
      change()
      // Rapid changes, and several properties in one instant.
      while breach == nil, random.chance(35) { change() }
    }
  }

  private func anyKey() -> KeyIndex {
    let count = registry.properties.count
    // After a restart, newer values meet the stored ones of their devices.
    if !stored.isEmpty, random.chance(40) {
      seen[.relatedChanges] += 1
      return anyKeyRelatedToStored()
    }
    // The favourites differ from seed to seed.
    if random.chance(80) {
      return KeyIndex(
        Int32((Int(seed % UInt64(count)) + random.below(probabilities.favourites)) % count)
      )
    }
    return KeyIndex(Int32(random.below(count)))
  }

  /// A key of the same device as a stored value, or one whose commands the stored value would end.
  private func anyKeyRelatedToStored() -> KeyIndex {
    let values = stored.values.sorted { $0.order < $1.order }
    let value = values.last { $0.isUrgent } ?? values[random.below(values.count)]
    let property = registry[value.key].property
    let related = registry.indices(ofDevice: registry[value.key].device).map { KeyIndex($0) }
    let ended = related.filter { property.ends.contains(registry[$0].property.id) }
    if !ended.isEmpty, random.chance(50) { return ended[random.below(ended.count)] }
    return related[random.below(related.count)]
  }

  private func anyValue(of property: Property) -> Value {
    if !property.urgent.isEmpty, random.chance(15) { return property.urgent[0] }
    return switch property.kind {
    case .number, .integer, .color:
      random.chance(30) ? .number(Double(random.below(4) * 30)) : .number(Double(random.below(101)))
    case .boolean: .boolean(random.chance(50))
    case .choice(let words), .action(let words): .text(words[random.below(words.count)])
    case .text: .text("text \(random.below(3))")
    }
  }

  private func anyChange(of property: Property) -> ValueChange {
    switch property.kind {
    case .number, .integer:
      if random.chance(25) { return .step(Double(random.within(-20...20))) }
    case .boolean:
      if random.chance(40) { return .toggle }
    case .choice, .text, .color, .action: break
    }
    // Sometimes a change that the type does not support.
    if random.chance(1) { return random.chance(50) ? .toggle : .step(1) }
    return .set(anyValue(of: property))
  }

  func change() {
    let key = anyKey()
    let change = anyChange(of: registry[key].property)
    var options = Model.Options(caller: 0, skipsQuiet: random.chance(20))
    if !core.isWatched || random.chance(70) {
      lastCaller += 1
      options.caller = lastCaller
    }
    let isGroup = model.groups[Int(key.rawValue)] != nil
    if options.caller != 0, !isGroup, random.chance(15) {
      options.ttl = .milliseconds(random.within(0...4000))
    }
    let device = registry[key].device
    if registry.devices[device].options.contains("transition"), random.chance(20) {
      options.transition = Double(random.within(1...3))
    }
    ask(change, of: key, options)
    // A button is pressed several times, now and then more often than may wait.
    guard registry[key].property.isAction, random.chance(30) else { return }
    for _ in 0..<random.within(2...(random.chance(10) ? 40 : 9)) where breach == nil {
      lastCaller += 1
      options.caller = options.caller == 0 ? 0 : lastCaller
      ask(.set(anyValue(of: registry[key].property)), of: key, options)
    }
  }

  /// Passes one change to the machine and to the model.
  func ask(
    _ change: ValueChange,
    of key: KeyIndex,
    _ options: Model.Options
  ) {
    wake(takesResult: random.chance(50))
    guard breach == nil else { return }
    seen[.changes] += 1
    if isTraced {
      log("\(name(key)) \(change), caller \(options.caller), skips quiet \(options.skipsQuiet)")
    }
    var options = options
    if options.isMessage { options.wait = expectedWait(change, of: key) }
    let found = answer(change, of: key, options)
    if found != nil { seen[.refusedChanges] += 1 }
    if model.groups[Int(key.rawValue)] != nil { return askGroup(change, of: key, options, found) }
    if case .notDurable? = found { return refusedByDisk(change, of: key) }
    let expected = model.change(change, of: key, options, at: now)
    if expected == nil, options.caller != 0 {
      ledger.expectsFinal(options.caller, ttl: options.ttl)
    }
    if found != expected {
      return fail(
        "\(name(key)) \(change) was answered \(Self.text(found)), not \(Self.text(expected))"
      )
    }
    compareEvents("after a change")
  }

  /// Passes one change to the machine; returns why it was rejected.
  private func answer(
    _ change: ValueChange,
    of key: KeyIndex,
    _ options: Model.Options
  ) -> ValidationError? {
    let full = ChangeOptions(
      origin: options.caller == 0
        ? nil : ChangeOrigin(source: "hand \(options.caller % 3)", replyTo: options.caller),
      ttl: options.ttl,
      members: options.transition.map { [.init("transition", JSONValue(shortest: $0))] },
      skipsQuiet: options.skipsQuiet
    )
    do throws(ValidationError) {
      if options.isMessage {
        try core.change(change, of: key, receivedOn: "a topic", at: now, full)
      } else {
        try core.change(change, of: key, at: now, full)
      }
      return nil
    } catch {
      return error
    }
  }

  /// Passes a change of a group, which was answered with `found`, to the model.
  private func askGroup(
    _ change: ValueChange,
    of key: KeyIndex,
    _ options: Model.Options,
    _ found: ValidationError?
  ) {
    seen[.groupChanges] += 1
    let place = Int(key.rawValue)
    let number = model.lastNumber + 1
    var refused: [Int: ValidationError] = [:]
    for event in core.undeliveredEvents
    where event.phase == .rejected && event.origin?.groupCommand?.number == number {
      guard let reason = event.reason, reason.contains("journal") else { continue }
      refused[Int(event.key.rawValue)] = .notDurable(reason)
    }
    if !refused.isEmpty { checkRefusalByDisk() }
    let before = model
    let result = model.changeGroup(change, of: place, options, refused: refused, at: now)
    if let found, found != result.error, isJournalled {
      // All were rejected, and of some the reason was the disk, which the model does not know.
      model = before
      model.lastNumber = number
      return checkRefusalByDisk()
    }
    if found != result.error {
      return fail(
        "\(name(key)) \(change) was answered \(Self.text(found)), not \(Self.text(result.error))"
      )
    }
    if result.error == nil {
      groups.began(
        number,
        place,
        canConfirm: registry[key].property.confirm != nil,
        accepted: result.accepted,
        rejected: (model.groups[place]?.count ?? 0) - result.accepted.count
      )
    }
    compareEvents("after a change of a group")
  }

  private static func text(_ error: ValidationError?) -> String {
    error.map { "'\($0)'" } ?? "with yes"
  }

  private func cancel() {
    wake()
    guard breach == nil else { return }
    let key = anyKey()
    if isTraced { log("\(name(key)) cancel") }
    let expected = model.cancel(key)
    if core.cancel(key, at: now, source: "test") != expected {
      fail("cancel of \(name(key)) answers wrongly")
    }
    compareEvents("after a cancel")
  }

  private func flush() {
    wake()
    guard breach == nil else { return }
    let key = anyKey()
    if isTraced { log("\(name(key)) flush") }
    let expected = model.flush(key, at: now)
    if core.flush(key, at: now, source: "test") != expected {
      fail("flush of \(name(key)) answers wrongly")
    }
    compareEvents("after a flush")
  }

  // MARK: - At the device

  private func moveByHand() {
    let key = anyKey()
    let property = registry[key].property
    guard property.state != nil else { return change() }
    let device = registry[key].device
    guard world.devices[device].isPowered else { return }
    let value = anyValue(of: property)
    if isTraced { log("\(name(key)) by hand to \(value.bareText)") }
    world.values[Int(key.rawValue)] = value
    planReport(key, property.wireValue(of: value))
  }

  private func switchPower() {
    let device = random.below(world.devices.count)
    guard registry.devices[device].group == nil else { return }
    if random.chance(40) {
      world.devices[device].isDeaf.toggle()
      if isTraced { log("device \(device) deaf: \(world.devices[device].isDeaf)") }
    } else {
      power(device, isOn: !world.devices[device].isPowered)
    }
  }

  // MARK: - The gateway's own end

  private func pickAnswered() -> UInt64? {
    answered.isEmpty ? nil : answered[random.below(answered.count)]
  }

  /// Starts a shutdown.
  private func beginClosing() {
    guard !core.isShuttingDown else { return }
    wake()
    guard breach == nil else { return }
    if isTraced { log("the gateway shuts down") }
    seen[.shutdowns] += 1
    core.beginShutdown(at: now)
    collect()
    model.close(at: now)
    compareEvents("after closing")
    routes.closed()
  }

  private func kill() {
    guard isJournalled, random.chance(40) else {
      if isTraced { log("the gateway is killed") }
      return restart(after: .killed)
    }
    if isTraced { log("the power is cut") }
    seen[.powerCuts] += 1
    let start = now.advanced(by: .milliseconds(random.within(0...40_000)))
    var clockSet = start
    var isFrozen = false
    if random.chance(probabilities.wrongClock) {
      isTimeDoubtful = true
      isFrozen = random.chance(50)
      clockSet = start.advanced(by: .seconds(random.within(1...90)))
    }
    restart(after: .powerCut(clockSet: clockSet, isFrozen: isFrozen), start: start)
  }

  /// Starts a new gateway with the rows of the disk.
  func restart(after end: GatewayEnd, start: Moment? = nil) {
    seen[.restarts] += 1
    disk.restart(after: end, at: now, start: start ?? now)
    let found = disk.contents.entries.map { survivor($0) }
    let opensLate = isJournalled && random.chance(probabilities.lateOpening)
    invariants.restart(found: found, isUnread: opensLate)
    stored = [:]
    for survivor in found { stored[survivor.key] = survivor }
    // Nothing else of the earlier process comes back.
    let kept = Set(found.map(\.order))
    orders = orders.filter { kept.contains($0.value) }
    now = start ?? now
    let isWatched = model.isWatched
    core = Self.makeCore(registry, settings, session: seen[.restarts], at: now)
    core.isWatched = isWatched
    if isJournalled { core.openStore(openJournal(isLate: opensLate), path: "journal") }
    core.keepTranscript()
    decided = []
    decidedCount = 0
    model = Model(
      registry,
      settings.commands,
      isWatched: isWatched,
      isJournalled: isJournalled
    )
    ledger.restart()
    groups.restart()
    routes.restart()
    lamps.restart()
    expiredRoutes = 0
    announceRouteGroups()
    retained.restart()
    outstanding = []
    tokens = []
    answered = []
    dropMessages()
    agenda.plan(
      .reconnection(generation: world.generation),
      at: now.advanced(by: .milliseconds(random.within(1...3000)))
    )
  }

  /// The journal of a new process, whose file cannot be opened for some time if `isLate`.
  private func openJournal(isLate: Bool) -> JournalPlan {
    guard isLate else { return JournalPlan(contents: disk.contents) }
    let delay = Duration.milliseconds(random.within(100...20_000))
    if isTraced { log("the journal's file cannot be opened for \(delay)") }
    seen[.lateOpenings] += 1
    disk.stayClosed(until: now.advanced(by: delay))
    return JournalPlan(fault: .readOnly, at: now)
  }
}
