// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Values

/// The link, the broker and the devices.
extension SimulatedLife {
  /// Performs the next planned event.
  func performNextEvent() {
    guard let entry = agenda.removeNext() else { return }
    switch entry.item {
    case .arrival(let message): arrive(message)
    case .answer(let token, let outcome, let generation):
      guard generation == world.generation, model.isConnected, !world.isHalfOpen else { return }
      answer(token, outcome)
    case .duplicateAnswer(let token): duplicateAnswer(token)
    case .delivery(let message): deliver(message)
    case .report(let key, let wire):
      world.retained[Int(key.rawValue)] = wire
      deliverReport(key)
    case .retainedReport(let key): deliverReport(key)
    case .availability(let device, let source, let isOnline):
      world.availability[device][source] = isOnline
      deliverAvailability(device, source)
    case .cut(let generation): if generation == world.generation { cut() }
    case .reconnection(let generation): if generation == world.generation { reconnect() }
    case .marker(let generation): if generation == world.generation { deliverMarker() }
    case .power(let device, let isOn): power(device, isOn: isOn)
    case .routeAnswer(let number, let outcome, let life):
      if life == seen[.restarts] { answerRoute(number, outcome) }
    case .rule(let value): askByMessage(value)
    case .farReconnection: world.isFarConnected = true
    }
  }

  private func after(_ range: ClosedRange<Int>) -> Moment {
    now.advanced(by: .milliseconds(random.within(range)))
  }

  // MARK: - To the broker

  func send(_ publish: CommandPublish) {
    seen[.publishes] += 1
    publishCount += 1
    if isTraced {
      log("leaves: \(publish.topic) \(String(decoding: publish.payload, as: UTF8.self))")
    }
    guard !outstanding.contains(where: { $0.message.token == publish.token }) else {
      return fail("the token of a publish in flight is reused")
    }
    guard !tokens.contains(publish.token) else { return fail("a token is used again") }
    tokens.append(publish.token)
    if tokens.count > 64 { tokens.removeFirst(32) }
    var values: [(key: KeyIndex, value: Value)] = []
    for key in publish.keys {
      guard let entry = model.keys[Int(key.rawValue)].flight?.entry else { continue }
      if entry.attempt > 1 { seen[.repetitions] += 1 }
      showRule(entry.value, of: key, isCommand: true)
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
    if let group = groupValues(of: publish) {
      seen[.groupMessages] += 1
      values = group
    }
    let message = Agenda.Message(
      token: publish.token,
      device: registry[publish.keys[0]].device,
      values: values,
      order: publishCount,
      generation: world.generation,
      survivesCut: random.chance(50),
      isRefused: !isFaultFree && random.chance(probabilities.refusal),
      isAnswered: isFaultFree || !random.chance(probabilities.lostAnswer)
    )
    outstanding.append((message, publish.keys))
    if world.isHalfOpen || !message.isAnswered {
      // The gateway waits for three seconds, then closes the connection.
      let moment = now.advanced(by: .seconds(3))
      agenda.plan(.cut(generation: world.generation), at: moment)
    }
    guard !world.isHalfOpen else { return }
    let isSlow = !isFaultFree && random.chance(probabilities.slowLink)
    world.nextArrival = max(world.nextArrival, after(isSlow ? 50...2500 : 0...20))
    agenda.plan(.arrival(message), at: world.nextArrival)
  }

  /// The values that all members of a group get by a message for it; `nil` for any other message.
  private func groupValues(of publish: CommandPublish) -> [(key: KeyIndex, value: Value)]? {
    let groups = model.groups.filter {
      registry.properties[$0.key].property.command.topic == publish.topic
    }
    guard !groups.isEmpty else { return nil }
    var found: [(key: KeyIndex, value: Value)] = []
    for members in groups.values.sorted(by: { $0[0] < $1[0] }) {
      let carried = publish.keys.first { members.contains(Int($0.rawValue)) }
      guard let carried, let entry = model.keys[Int(carried.rawValue)].flight?.entry else {
        continue
      }
      found += members.map { (KeyIndex(Int32($0)), entry.value) }
    }
    return found
  }

  private func arrive(_ message: Agenda.Message) {
    if message.isRefused {
      let outcome = PublishOutcome.refused("not authorized")
      return agenda.plan(
        .answer(message.token, outcome, generation: message.generation),
        at: after(0...30)
      )
    }
    if message.isAnswered {
      agenda.plan(
        .answer(message.token, .acknowledged, generation: message.generation),
        at: after(0...30)
      )
      for (key, _) in message.values { world.lastAcknowledged[Int(key.rawValue)] = message.order }
    }
    planDeliveries(message)
  }

  /// Hands a message to each device that it is for.
  private func planDeliveries(_ message: Agenda.Message) {
    var devices: [Int] = []
    for (key, _) in message.values where devices.last != registry[key].device {
      if !devices.contains(registry[key].device) { devices.append(registry[key].device) }
    }
    for device in devices {
      var own = message
      own.device = device
      own.values = message.values.filter { registry[$0.key].device == device }
      planDelivery(own)
    }
  }

  private func planDelivery(_ message: Agenda.Message) {
    let device = message.device
    let isSlow = !isFaultFree && random.chance(probabilities.slowDevice)
    let moment = max(world.devices[device].nextDelivery, after(isSlow ? 100...4000 : 1...60))
    world.devices[device].nextDelivery = moment
    agenda.plan(.delivery(message), at: moment)
  }

  func answer(_ token: UInt64, _ outcome: PublishOutcome) {
    guard let place = outstanding.firstIndex(where: { $0.message.token == token }) else { return }
    let keys = outstanding.remove(at: place).keys
    if isTraced { log("answer to \(keys.map { name($0) }): \(outcome)") }
    if random.chance(50) { wake() }
    core.commandFinished(token, outcome, at: now)
    model.finish(keys, outcome, at: now)
    compareEvents("after an answer")
    answered.append(token)
    if answered.count > 8 { answered.removeFirst() }
  }

  /// A duplicate reply must have no effect.
  private func duplicateAnswer(_ token: UInt64) {
    guard !outstanding.contains(where: { $0.message.token == token }) else { return }
    if isTraced { log("a stray answer") }
    core.commandFinished(token, random.chance(50) ? .acknowledged : .lost, at: now)
    compareEvents("after a stray answer")
  }

  /// Sends a request for the state of a device, which may answer.
  func send(_ request: StateRequestMessage) {
    seen[.requests] += 1
    let payload = String(decoding: request.payload, as: UTF8.self)
    if isTraced { log("asks: \(request.topic) \(payload)") }
    if let wrong = model.asked(request, at: now) {
      return fail("device \(request.device) \(wrong)")
    }
    guard world.devices[request.device].isPowered, !world.isHalfOpen, random.chance(70) else {
      return
    }
    for key in request.keys {
      guard let value = world.values[Int(key.rawValue)] else { continue }
      planReport(key, registry[key].property.wireValue(of: value))
    }
  }

  // MARK: - The connection

  func breakLink() {
    guard model.isConnected else { return }
    if random.chance(30) {
      world.isHalfOpen = true
      if isTraced { log("the link is half open") }
      agenda.plan(.cut(generation: world.generation), at: after(500...20_000))
    } else {
      cut()
    }
  }

  /// Ends the connection; unanswered publishes are lost.
  func cut() {
    guard model.isConnected else { return }
    seen[.cuts] += 1
    if isTraced { log("the connection ends") }
    let isReportedFirst = random.chance(50)
    if isReportedFirst { reportConnection(false) }
    while breach == nil, !outstanding.isEmpty {
      answer(outstanding[random.below(outstanding.count)].message.token, .lost)
    }
    if !isReportedFirst, breach == nil { reportConnection(false) }
    loseRoutes(to: 0)
    dropMessages()
    let patience = random.chance(70) ? 100...3000 : 3000...70_000
    agenda.plan(
      .reconnection(generation: world.generation),
      at: after(isFaultFree ? 10...20 : patience)
    )
  }

  /// Delivers or drops messages in flight before the next connection.
  func dropMessages() {
    world.generation += 1
    world.nextArrival = .zero
    world.isHalfOpen = false
    for message in agenda.removeArrivals() where message.survivesCut && !message.isRefused {
      planDeliveries(message)
    }
  }

  private func reportConnection(_ isUp: Bool) {
    core.connectionChanged(isUp: isUp, at: now)
    model.connection(isUp: isUp, at: now)
    compareEvents(isUp ? "after the connection came" : "after the connection went")
  }

  private func reconnect() {
    guard !model.isConnected else { return }
    if isTraced { log("connected") }
    let hasLostAll = random.chance(20)
    if hasLostAll { seen[.brokerLosses] += 1 }
    retained.connected(hasLostAll: hasLostAll)
    reportConnection(true)
    // Retained messages carry the missed reports.
    for device in registry.devices.indices {
      for source in world.availability[device].indices where random.chance(90) || isFaultFree {
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
    for place in world.retained.indices where isFaultFree || random.chance(90) {
      agenda.plan(.retainedReport(KeyIndex(Int32(place))), at: after(0...40))
    }
    if isFaultFree || random.chance(85) {
      agenda.plan(.marker(generation: world.generation), at: after(0...80))
    }
  }

  /// A broker may send retained messages after the marker.
  private func deliverMarker() {
    guard model.isConnected, !world.isHalfOpen else { return }
    wake()
    guard breach == nil else { return }
    if isTraced { log("the broker has sent what it retains") }
    core.retainedMessagesCompleted(at: now)
    if model.retainedBy != nil { model.retainedCompleted() }
    compareEvents("after the retained messages")
  }

  // MARK: - Devices

  private func deliver(_ message: Agenda.Message) {
    let device = message.device
    guard world.devices[device].isPowered else {
      world.devices[device].backlog.append(message)
      return
    }
    world.devices[device].recent.append(message)
    if world.devices[device].recent.count > 3 { world.devices[device].recent.removeFirst() }
    for (key, value) in message.values {
      world.lastDelivered[Int(key.rawValue)] = message.order
      apply(value, key, device)
    }
  }

  private func apply(_ value: Value, _ key: KeyIndex, _ device: Int) {
    let place = Int(key.rawValue)
    let property = registry[key].property
    guard isFaultFree || (!world.devices[device].isDeaf && !random.chance(probabilities.drop))
    else {
      return
    }
    if isTraced { log("\(name(key)) takes \(value.bareText)") }
    let before = world.values[place]
    world.values[place] = value
    guard property.state != nil else { return }
    if case .number(let end) = value, case .number(let start)? = before,
      random.chance(probabilities.interim)
    {
      planWay(of: key, from: start, to: end)
    }
    if case .number(let end) = value, random.chance(20) {
      // A device that rounds.
      planReport(key, .number(end + 0.25))
    } else {
      planReport(key, property.wireValue(of: value))
    }
  }

  /// A device reports its way, which may take long; it may repeat first what it was asked for.
  private func planWay(of key: KeyIndex, from start: Double, to end: Double) {
    if random.chance(60) {
      seen[.travels] += 1
      planReport(key, .number(end))
    }
    let pause = isFaultFree || random.chance(70) ? 0 : random.within(500...2500)
    let parts = random.within(2...4)
    for part in 1..<parts {
      let way = (end - start) * Double(part) / Double(parts)
      planReport(key, .number((start + way).rounded()), after: pause * part)
    }
  }

  /// Plans a report, `delay` in milliseconds after what the device takes anyway.
  func planReport(_ key: KeyIndex, _ wire: JSONValue, after delay: Int = 0) {
    let device = registry[key].device
    let isSlow = !isFaultFree && random.chance(probabilities.slowDevice)
    let latency = after(isSlow ? 100...3000 : 1...40).advanced(by: .milliseconds(delay))
    let moment = max(world.devices[device].nextReport, latency)
    world.devices[device].nextReport = moment
    agenda.plan(.report(key, wire), at: moment)
  }

  private func deliverReport(_ key: KeyIndex) {
    guard model.isConnected, !world.isHalfOpen, let wire = world.retained[Int(key.rawValue)]
    else { return }
    wake()
    guard breach == nil else { return }
    if isTraced { log("\(name(key)) shows \(wire)") }
    ledger.shown(key, wire)
    core.reported(key, wire, source: 0, at: now)
    model.reported(key, wire, at: now)
    compareEvents("after a report")
    if let value = registry[key].property.value(fromWire: wire) {
      showRule(value, of: key, isCommand: false)
    }
  }

  func power(_ device: Int, isOn: Bool) {
    guard world.devices[device].isPowered != isOn else { return }
    if isTraced { log("device \(device) powered: \(isOn)") }
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
    var messages = world.devices[device].backlog + agenda.removeDeliveries(to: device)
    world.devices[device].backlog = []
    if random.chance(probabilities.repetition) {
      messages = world.devices[device].recent + messages
    }
    for message in messages { planDelivery(message) }
    for raw in registry.indices(ofDevice: device) where random.chance(60) {
      let key = KeyIndex(raw)
      let property = registry[key].property
      guard property.state != nil, let value = world.values[Int(raw)] else { continue }
      planReport(key, property.wireValue(of: value))
    }
  }

  private func deliverAvailability(_ device: Int, _ source: Int) {
    guard model.isConnected, !world.isHalfOpen else { return }
    wake()
    guard breach == nil else { return }
    let isOnline = world.availability[device][source]
    if isTraced {
      log("device \(device) says by \(source) that it is \(isOnline ? "online" : "offline")")
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
    compareEvents("after a word on availability")
  }
}
