// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import LastOutTesting

/// The link, the broker and the devices.
extension SimulatedLife {
  /// Performs the next planned event.
  mutating func happen() {
    guard let entry = agenda.take() else { return }
    switch entry.item {
    case .arrival(let letter): arrive(letter)
    case .answer(let token, let outcome, let generation):
      guard generation == world.generation, model.isConnected, !world.isHalfOpen else { return }
      answer(token, outcome)
    case .stray(let token): stray(token)
    case .delivery(let letter): deliver(letter)
    case .report(let key, let wire):
      world.retained[Int(key.rawValue)] = wire
      hearReport(key)
    case .reminder(let key): hearReport(key)
    case .availability(let device, let source, let isOnline):
      world.availability[device][source] = isOnline
      hearAvailability(device, source)
    case .cut(let generation): if generation == world.generation { cut() }
    case .reconnection(let generation): if generation == world.generation { reconnect() }
    case .power(let device, let isOn): power(device, isOn: isOn)
    case .routeAnswer(let number, let outcome, let life):
      if life == seen.restarts { answerRoute(number, outcome) }
    case .farReconnection: world.isFarConnected = true
    }
  }

  private mutating func after(_ range: ClosedRange<Int>) -> Moment {
    now.advanced(by: .milliseconds(random.within(range)))
  }

  // MARK: - To the broker

  mutating func send(_ publish: CommandPublish) {
    seen.publishes += 1
    publishCount += 1
    if isTraced {
      note("leaves: \(publish.topic) \(String(decoding: publish.payload, as: UTF8.self))")
    }
    guard !outstanding.contains(where: { $0.letter.token == publish.token }) else {
      return fail("the token of a publish in flight is reused")
    }
    guard !tokens.contains(publish.token) else { return fail("a token is used again") }
    tokens.append(publish.token)
    if tokens.count > 64 { tokens.removeFirst(32) }
    var values: [(key: KeyIndex, value: Value)] = []
    for key in publish.keys {
      guard let entry = model.keys[Int(key.rawValue)].flight?.entry else { continue }
      if entry.attempt > 1 { seen.repetitions += 1 }
      values.append((key, entry.value))
      if let wrong = invariants.left(
        number: entry.number,
        isDiskFailing: disk.isFailing,
        at: now
      ) {
        fail(wrong)
      }
      if !invariants.isExempt(entry.number) { ledger.left(entry.number) }
    }
    let letter = Agenda.Letter(
      token: publish.token,
      device: registry[publish.keys[0]].device,
      values: values,
      order: publishCount,
      generation: world.generation,
      survivesCut: random.chance(50),
      isRefused: !isCalm && random.chance(probabilities.refusal),
      isAnswered: isCalm || !random.chance(probabilities.lostAnswer)
    )
    outstanding.append((letter, publish.keys))
    if world.isHalfOpen || !letter.isAnswered {
      // The gateway waits for three seconds, then closes the connection.
      let moment = now.advanced(by: .seconds(3))
      agenda.plan(.cut(generation: world.generation), at: moment)
    }
    guard !world.isHalfOpen else { return }
    let isSlow = !isCalm && random.chance(probabilities.slowLink)
    agenda.plan(.arrival(letter), at: after(isSlow ? 50...2500 : 0...20))
  }

  private mutating func arrive(_ letter: Agenda.Letter) {
    if letter.isRefused {
      let outcome = CommandPublish.Outcome.refused("not authorized")
      return agenda.plan(
        .answer(letter.token, outcome, generation: letter.generation),
        at: after(0...30)
      )
    }
    if letter.isAnswered {
      agenda.plan(
        .answer(letter.token, .acknowledged, generation: letter.generation),
        at: after(0...30)
      )
      for (key, _) in letter.values { world.lastAcknowledged[Int(key.rawValue)] = letter.order }
    }
    planDelivery(letter)
  }

  private mutating func planDelivery(_ letter: Agenda.Letter) {
    let device = letter.device
    let isSlow = !isCalm && random.chance(probabilities.slowDevice)
    let moment = max(world.devices[device].nextDelivery, after(isSlow ? 100...4000 : 1...60))
    world.devices[device].nextDelivery = moment
    agenda.plan(.delivery(letter), at: moment)
  }

  mutating func answer(_ token: UInt64, _ outcome: CommandPublish.Outcome) {
    guard let place = outstanding.firstIndex(where: { $0.letter.token == token }) else { return }
    let keys = outstanding.remove(at: place).keys
    if isTraced { note("answer to \(keys.map { name($0) }): \(outcome)") }
    if random.chance(50) { wake() }
    core.commandFinished(token, outcome, at: now)
    model.finish(keys, outcome, at: now)
    agree("after an answer")
    answered.append(token)
    if answered.count > 8 { answered.removeFirst() }
  }

  /// A duplicate reply must have no effect.
  private mutating func stray(_ token: UInt64) {
    guard !outstanding.contains(where: { $0.letter.token == token }) else { return }
    if isTraced { note("a stray answer") }
    core.commandFinished(token, random.chance(50) ? .acknowledged : .lost, at: now)
    agree("after a stray answer")
  }

  // MARK: - The connection

  mutating func breakLink() {
    guard model.isConnected else { return }
    if random.chance(30) {
      world.isHalfOpen = true
      if isTraced { note("the link is half open") }
      agenda.plan(.cut(generation: world.generation), at: after(500...20_000))
    } else {
      cut()
    }
  }

  /// Ends the connection; unanswered publishes are lost.
  mutating func cut() {
    guard model.isConnected else { return }
    seen.cuts += 1
    if isTraced { note("the connection ends") }
    let isToldFirst = random.chance(50)
    if isToldFirst { tellConnection(false) }
    while breach == nil, !outstanding.isEmpty {
      answer(outstanding[random.below(outstanding.count)].letter.token, .lost)
    }
    if !isToldFirst, breach == nil { tellConnection(false) }
    loseRoutes(to: 0)
    loseLetters()
    let patience = random.chance(70) ? 100...3000 : 3000...70_000
    agenda.plan(.reconnection(generation: world.generation), at: after(isCalm ? 10...20 : patience))
  }

  /// Delivers or drops messages in flight before the next connection.
  mutating func loseLetters() {
    world.generation += 1
    world.isHalfOpen = false
    for letter in agenda.takeArrivals() where letter.survivesCut && !letter.isRefused {
      planDelivery(letter)
    }
  }

  private mutating func tellConnection(_ isUp: Bool) {
    core.connectionChanged(isUp: isUp, at: now)
    model.connection(isUp: isUp)
    agree(isUp ? "after the connection came" : "after the connection went")
  }

  private mutating func reconnect() {
    guard !model.isConnected else { return }
    if isTraced { note("connected") }
    let hasLostAll = random.chance(20)
    if hasLostAll { seen.brokerLosses += 1 }
    retained.connected(hasLostAll: hasLostAll)
    tellConnection(true)
    // Retained messages carry the missed reports.
    for device in registry.devices.indices {
      for source in world.availability[device].indices where random.chance(90) || isCalm {
        agenda.plan(
          .availability(
            device: device,
            source: source,
            isOnline: world.availability[device][source]
          ),
          at: after(0...20)
        )
      }
    }
    for place in world.retained.indices where isCalm || random.chance(90) {
      agenda.plan(.reminder(KeyIndex(Int32(place))), at: after(0...40))
    }
  }

  // MARK: - Devices

  private mutating func deliver(_ letter: Agenda.Letter) {
    let device = letter.device
    guard world.devices[device].isPowered else {
      world.devices[device].backlog.append(letter)
      return
    }
    world.devices[device].recent.append(letter)
    if world.devices[device].recent.count > 3 { world.devices[device].recent.removeFirst() }
    for (key, value) in letter.values {
      world.lastDelivered[Int(key.rawValue)] = letter.order
      apply(value, key, device)
    }
  }

  private mutating func apply(_ value: Value, _ key: KeyIndex, _ device: Int) {
    let place = Int(key.rawValue)
    let property = registry[key].property
    guard isCalm || (!world.devices[device].isDeaf && !random.chance(probabilities.drop)) else {
      return
    }
    if isTraced { note("\(name(key)) takes \(value.bareText)") }
    let before = world.values[place]
    world.values[place] = value
    guard property.state != nil else { return }
    if case .number(let end) = value, case .number(let start)? = before,
      random.chance(probabilities.interim)
    {
      planReport(key, .number(((start + end) / 2).rounded()))
    }
    if case .number(let end) = value, random.chance(20) {
      // A device that rounds.
      planReport(key, .number(end + 0.25))
    } else {
      planReport(key, property.wireValue(of: value))
    }
  }

  mutating func planReport(_ key: KeyIndex, _ wire: JSONValue) {
    let device = registry[key].device
    let isSlow = !isCalm && random.chance(probabilities.slowDevice)
    let moment = max(world.devices[device].nextReport, after(isSlow ? 100...3000 : 1...40))
    world.devices[device].nextReport = moment
    agenda.plan(.report(key, wire), at: moment)
  }

  private mutating func hearReport(_ key: KeyIndex) {
    guard model.isConnected, !world.isHalfOpen, let wire = world.retained[Int(key.rawValue)]
    else { return }
    wake()
    guard breach == nil else { return }
    if isTraced { note("\(name(key)) shows \(wire)") }
    ledger.shown(key, wire)
    core.reported(key, wire, source: 0, at: now)
    model.reported(key, wire, at: now)
    agree("after a report")
  }

  mutating func power(_ device: Int, isOn: Bool) {
    guard world.devices[device].isPowered != isOn else { return }
    if isTraced { note("device \(device) powered: \(isOn)") }
    world.devices[device].isPowered = isOn
    if !world.availability[device].isEmpty {
      let source = random.below(world.availability[device].count)
      for other in world.availability[device].indices where isOn || other == source {
        agenda.plan(
          .availability(device: device, source: other, isOnline: isOn),
          at: after(isOn ? 0...50 : 0...2000)
        )
      }
    }
    guard isOn else { return }
    // The broker redelivers unacknowledged messages, then later ones.
    var letters = world.devices[device].backlog + agenda.takeDeliveries(to: device)
    world.devices[device].backlog = []
    if random.chance(probabilities.repetition) { letters = world.devices[device].recent + letters }
    for letter in letters { planDelivery(letter) }
    for raw in registry.indices(ofDevice: device) where random.chance(60) {
      let key = KeyIndex(raw)
      let property = registry[key].property
      guard property.state != nil, let value = world.values[Int(raw)] else { continue }
      planReport(key, property.wireValue(of: value))
    }
  }

  private mutating func hearAvailability(_ device: Int, _ source: Int) {
    guard model.isConnected, !world.isHalfOpen else { return }
    wake()
    guard breach == nil else { return }
    let isOnline = world.availability[device][source]
    if isTraced {
      note("device \(device) says by \(source) that it is \(isOnline ? "online" : "offline")")
    }
    let wasOnline = model.devices[device].isOnline
    let hasChanged = core.availability(
      ofDevice: device,
      source: source,
      isOnline: isOnline,
      at: now
    )
    model.availability(ofDevice: device, source: source, isOnline: isOnline)
    if hasChanged != (model.devices[device].isOnline != wasOnline) {
      fail("device \(device) is said to have \(hasChanged ? "" : "not ")changed")
    }
    agree("after a word on availability")
  }
}
