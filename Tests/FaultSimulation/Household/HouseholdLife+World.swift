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
extension HouseholdLife {
  func perform(_ event: HouseholdEvent) {
    switch event {
    case .request(let request): ask(request)
    case .arrival(let message): arrive(message)
    case .acknowledgement(let token, let generation):
      if generation == broker.generation { acknowledge(token) }
    case .delivery(let device, let message): deliver(message, to: device)
    case .report(let key, let wire):
      broker.reports[key] = wire
      deliverReport(key)
    case .retainedReport(let key): deliverReport(key)
    case .tick(let device, let name, let serial): tick(device, name, serial)
    case .availability(let device, let isOnline):
      broker.isOnline[device] = isOnline
      deliverAvailability(device)
    case .cut(let generation): if generation == broker.generation { cut() }
    case .reconnection(let generation): if generation == broker.generation { reconnect() }
    case .power(let device, let isOn): power(device, isOn: isOn)
    case .hand(let key, let value): move(key, to: value)
    case .reload: reload()
    case .crash: crash()
    }
  }

  // MARK: - To the broker

  func send(_ publish: CommandPublish) {
    let message = HouseholdBroker.Message(
      token: publish.token,
      topic: publish.topic,
      payload: publish.payload,
      keys: publish.keys.map { Int($0.rawValue) },
      generation: broker.generation,
      survivesCut: random.chance(50)
    )
    broker.outstanding.append(message)
    broker.nextArrival = max(broker.nextArrival, after(traits.network))
    timeline.plan(.arrival(message), at: broker.nextArrival)
  }

  private func arrive(_ message: HouseholdBroker.Message) {
    planDeliveries(message)
    if random.chance(traits.lostAcknowledgements) {
      // The client waits for it, then closes the connection.
      seen[.lostAcknowledgements] += 1
      return timeline.plan(.cut(generation: message.generation), at: after(5000...20_000))
    }
    let isLate = random.chance(traits.lateAcknowledgements)
    let moment = after(isLate ? traits.acknowledgement : 0...30)
    if now.duration(to: moment) > .milliseconds(500) {
      seen[.lateAcknowledgements] += 1
      if mistake == .acknowledgementLost { return }
    }
    timeline.plan(.acknowledgement(message.token, generation: message.generation), at: moment)
  }

  private func acknowledge(_ token: UInt64) {
    guard let place = broker.outstanding.firstIndex(where: { $0.token == token }) else { return }
    if place > 0 { seen[.reorderedAcknowledgements] += 1 }
    let message = broker.outstanding.remove(at: place)
    if isTraced { log("acknowledged: \(message.keys.map { name($0) })") }
    core.commandFinished(token, .acknowledged, at: now)
    collect()
  }

  /// Hands a message to each device that it is for.
  private func planDeliveries(_ message: HouseholdBroker.Message) {
    let id = message.topic.split(separator: "/")[0]
    let members =
      registry.devices.first { $0.group != nil && $0.id == id }?.group?.members ?? [String(id)]
    for member in members {
      guard let device = registry.devices.firstIndex(where: { $0.id == member }) else { continue }
      let isLate = random.chance(traits.lateDevices)
      nextDelivery[device] = max(nextDelivery[device], after(isLate ? 100...4000 : 1...60))
      timeline.plan(.delivery(device: device, message), at: nextDelivery[device])
    }
  }

  // MARK: - The connection

  func cut() {
    guard broker.isConnected else { return }
    if isTraced { log("the connection ends") }
    losses.disturbedAll()
    broker.isConnected = false
    core.connectionChanged(isUp: false, at: now)
    while !broker.outstanding.isEmpty {
      let message = broker.outstanding.remove(at: random.below(broker.outstanding.count))
      core.commandFinished(message.token, .lost, at: now)
    }
    collect()
    dropMessages()
    let patience = random.chance(70) ? 100...3000 : 3000...70_000
    timeline.plan(.reconnection(generation: broker.generation), at: after(patience))
  }

  /// Delivers or drops messages in flight before the next connection.
  func dropMessages() {
    broker.generation += 1
    broker.nextArrival = .zero
    for case .arrival(let message) in timeline.remove(where: {
      if case .arrival = $0 { true } else { false }
    }) where message.survivesCut {
      planDeliveries(message)
    }
  }

  private func reconnect() {
    guard !broker.isConnected else { return }
    if isTraced { log("connected") }
    broker.isConnected = true
    core.connectionChanged(isUp: true, at: now)
    announceGroups()
    collect()
    for device in registry.devices.indices where registry.devices[device].group == nil {
      timeline.plan(
        .availability(device: device, isOnline: broker.isOnline[device]),
        at: after(0...20)
      )
    }
    for key in broker.reports.indices where broker.reports[key] != nil {
      timeline.plan(.retainedReport(key: key), at: after(0...40))
    }
  }

  /// The bridge announces its groups.
  private func announceGroups() {
    let groups = registry.devices.indices.filter { registry.devices[$0].group != nil }
    core.setBridgeGroups(Set(groups))
  }

  private func reload() {
    guard !core.isReloading else { return }
    seen[.reloads] += 1
    if isTraced { log("the devices are read again") }
    let next = Household.devices(traits, edition: random.below(3))
    core.beginReload(Registry(next, continuing: core.registry), lanes: Household.lanes)
  }

  func reloaded() { if broker.isConnected { announceGroups() } }

  private func deliverAvailability(_ device: Int) {
    guard broker.isConnected else { return }
    _ = core.availability(
      ofDevice: device,
      source: 0,
      isOnline: broker.isOnline[device],
      at: now
    )
    collect()
  }

  // MARK: - Devices

  private func deliver(_ message: HouseholdBroker.Message, to device: Int) {
    let keys = message.keys.filter { facts[$0].device == device }
    guard devices[device].isPowered else { return isUnheard(keys) }
    if random.chance(traits.drops) {
      seen[.drops] += 1
      losses.disturbed(self.keys(of: device))
      if isTraced { log("\(registry.devices[device].id) does not hear it") }
      return isUnheard(keys)
    }
    if random.chance(traits.refusals) {
      seen[.refusals] += 1
      losses.disturbed(self.keys(of: device))
      if isTraced { log("\(registry.devices[device].id) refuses") }
      isUnheard(keys)
      for key in keys { reportState(key) }
      return
    }
    let members = Self.members(of: message.payload)
    if devices[device].form == .statefulLamp, members.contains(where: { $0.name != "power" }) {
      seen[.impliesCarried] += 1
    }
    if isTraced { log("\(registry.devices[device].id) gets \(members)") }
    if members.contains(where: { $0.value == "STOP" }),
      devices[device].isMoving("position", at: now)
    {
      seen[.stopEndedTravel] += 1
    }
    for key in keys { expectation.heard(key) }
    for reaction in devices[device].obey(members, at: now) { react(device, reaction) }
  }

  /// Nothing reports whether a press was heard.
  private func isUnheard(_ keys: [Int]) {
    for key in keys { expectation.unheard(key) }
    for key in keys where facts[key].isAction {
      for move in facts[key].moves.values { expectation.excuse(move.key) }
    }
  }

  private func react(_ device: Int, _ reaction: HouseholdDevice.Reaction) {
    switch reaction {
    case .reports(let name, let value): planReport(device, name, value)
    case .travels(let name, let serial):
      let interval = devices[device].temper.interval
      timeline.plan(.tick(device: device, name, serial: serial), at: after(interval...interval))
    case .clamped(let name):
      seen[.clamps] += 1
      if let key = key(device, name) { expectation.excuse(key) }
    case .fades(let level):
      for part in [0.66, 0.33] {
        planReport(device, "brightness", .number((level * part).rounded()))
      }
    }
  }

  private func tick(_ device: Int, _ name: String, _ serial: Int) {
    guard devices[device].isPowered, let motion = devices[device].motion(name, serial) else {
      return
    }
    seen[.interimReports] += 1
    if let key = key(device, name), expectation.phase(of: key) == .confirmed {
      seen[.confirmedThenTravelled] += 1
    }
    if motion.start.duration(to: now) > .seconds(300) { seen[.fiveMinutes] += 1 }
    planReport(device, name, motion.value(at: now))
    if now < motion.end {
      let next = min(motion.end, now.advanced(by: .milliseconds(devices[device].temper.interval)))
      timeline.plan(.tick(device: device, name, serial: serial), at: next)
    } else if mistake == .neverArrives {
      _ = devices[device].moved(name, to: motion.from, at: now)
    } else {
      devices[device].arrived(name)
    }
  }

  func key(_ device: Int, _ name: String) -> Int? {
    registry.indices(ofDevice: device).map { Int($0) }.first {
      registry.properties[$0].property.id == name
    }
  }

  /// Reports a property as it is.
  func reportState(_ key: Int) {
    let device = facts[key].device
    let name = registry.properties[key].property.id
    guard let value = devices[device].value(name, at: now) else { return }
    planReport(device, name, value)
  }

  private func planReport(_ device: Int, _ name: String, _ value: Value) {
    guard let key = key(device, name) else { return }
    let wire = registry.properties[key].property.wireValue(of: value)
    let isLate = random.chance(traits.lateDevices / 2)
    nextReport[device] = max(nextReport[device], after(isLate ? 100...3000 : 1...40))
    timeline.plan(.report(key: key, wire), at: nextReport[device])
  }

  private func deliverReport(_ key: Int) {
    guard broker.isConnected, let wire = broker.reports[key] else { return }
    let index = KeyIndex(Int32(key))
    if random.chance(traits.garbage) {
      seen[.garbage] += 1
      losses.disturbed(keys(of: facts[key].device))
      core.reported(index, .string("?!"), source: 0, at: now)
    }
    if isTraced { log("\(name(key)) shows \(wire)") }
    core.reported(index, wire, source: 0, at: now)
    heard[key] = registry[index].property.value(fromWire: wire)
    endedUnheard.remove(key)
    noteLate(key)
    let isDark = facts[key].implies.map { heard[$0] == .boolean(false) } ?? false
    if isDark { heardDark.insert(key) } else { heardDark.remove(key) }
    collect()
  }

  /// Notes whether a report says what a key is: one that comes late is about an older message, and
  /// nothing tells a gateway so.
  private func noteLate(_ key: Int) {
    let value = devices[facts[key].device].value(registry.properties[key].property.id, at: now)
    let isTrue = value.flatMap { value in heard[key].map { facts[key].isSame($0, value) } } ?? true
    if isTrue || isMoving(key) { heardLate.remove(key) } else { heardLate.insert(key) }
  }

  private func power(_ device: Int, isOn: Bool) {
    guard devices[device].isPowered != isOn else { return }
    if isTraced { log("\(registry.devices[device].id) powered: \(isOn)") }
    // The gateway may not have heard of the loss.
    let isUnnoticed = timeline.contains {
      if case .availability(device, _) = $0 { true } else { false }
    }
    if isOn, isUnnoticed { losses.disturbed(keys(of: device)) }
    if !isOn { noteLoss(of: device) }
    timeline.plan(
      .availability(device: device, isOnline: isOn),
      at: after(isOn ? 0...50 : 0...2000)
    )
    if isOn {
      devices[device].isPowered = true
      poweredAt[device] = now
      for name in devices[device].names {
        guard let key = key(device, name) else { continue }
        reportState(key)
      }
      return
    }
    for key in facts.indices where facts[key].device == device { expectation.disturbed(key) }
    for name in devices[device].losePower(at: now) {
      seen[.forgottenValues] += 1
      guard let key = key(device, name), let value = devices[device].value(name, at: now) else {
        continue
      }
      expectation.touched(key, value)
    }
  }

  private func move(_ key: Int, to value: Value) {
    let device = facts[key].device
    guard devices[device].isPowered else { return }
    if isTraced { log("\(name(key)) by hand to \(value.bareText)") }
    seen[.hands] += 1
    losses.disturbed(keys(of: device))
    if poweredAt[device].map({ $0.duration(to: now) > .seconds(5) }) ?? true {
      losses.forget(keys(of: device))
    }
    if value == .boolean(false),
      facts.indices.contains(where: { facts[$0].implies == key && expectation.isUnresolved($0) })
    {
      seen[.impliesByHand] += 1
    }
    var moved = [(key, value)]
    if let implied = facts[key].implies {
      moved.append((implied, .boolean(HouseholdFacts.implied(by: value))))
    }
    for (key, value) in moved {
      // A value that came back after a crash may follow a hand that nobody has seen.
      let isReplayed =
        expectation.command(of: key).map { commands.replayed.contains($0.intent) } ?? false
      expectation.touched(key, value)
      if isLate(key) || isReplayed { expectation.excuse(key) }
      let reactions = devices[device].moved(
        registry.properties[key].property.id,
        to: value,
        at: now
      )
      for reaction in reactions where mistake != .handUnreported { react(device, reaction) }
    }
  }

  // MARK: - Payloads

  /// The members of a flat JSON object.
  static func members(of payload: [UInt8]) -> [(name: String, value: JSONValue)] {
    let text = String(decoding: payload, as: UTF8.self)
    return text.dropFirst().dropLast().split(separator: ",").compactMap { member in
      let parts = member.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { return nil }
      let name = String(parts[0].dropFirst().dropLast())
      if parts[1].hasPrefix("\"") {
        return (name, .string(String(parts[1].dropFirst().dropLast())))
      }
      if let number = Double(parts[1]) { return (name, JSONValue(shortest: number)) }
      return (name, .boolean(parts[1] == "true"))
    }
  }
}
