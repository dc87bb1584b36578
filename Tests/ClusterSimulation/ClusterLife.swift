// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Devices
import GatewayCore
import LastOut
import LastOutTesting
import Values

/// A run of several gateways as one, on virtual time: machines that die and pause, links that
/// break, an engine that elects, a broker whose sessions change hands.
///
/// It drives the ``Membership``, the ``PartitionLogs`` and the ``GatewayCore`` that ship. The same
/// seed gives the same run.
package final class ClusterLife {
  static let partitions = 8
  static let all = (0..<partitions).map { Partition($0) }

  /// The first violated rule, which ends the run.
  package private(set) var breach: String?
  package private(set) var steps = 0
  package internal(set) var seen = ClusterCoverage()

  let time: VirtualTime
  let engine: SimulatedEngine
  let sessions: SimulatedSessions
  let registry: Registry
  private var ledger: ClusterLedger
  private var requests = RequestLedger()
  /// When the newest message arrives that a process has sent to a member.
  private var links: [Link: Moment] = [:]
  private var members: [SimulatedMember] = []
  private var lives = 0
  /// The members that run a later version, from their next start on.
  private var upgraded: Set<String> = []
  /// The partitions of which the engine has forgotten entries that no owner has written again.
  private var forgotten: Set<Partition> = []
  /// The partitions of which it has ever forgotten entries.
  private var wereForgotten: Set<Partition> = []
  private var order = 0
  private(set) var isFaulty = true
  /// Processes whose watch shows nothing, until when.
  private var deafUntil: [Int: Moment] = [:]
  private let listener: ((String) -> Void)?
  private let deviceKeys: [[KeyIndex]]

  package init(seed: UInt64, listener: ((String) -> Void)? = nil) {
    self.listener = listener
    time = VirtualTime(SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 0xC1_05))
    engine = SimulatedEngine(time)
    sessions = SimulatedSessions(time)
    registry = Registry(ClusterHouse.devices)
    let registry = registry
    ledger = ClusterLedger(registry)
    deviceKeys = registry.devices.indices.map { device in
      registry.indices(ofDevice: device).map { KeyIndex($0) }
    }
    engine.onChange = { [unowned self] key, record, revision in
      tell(key, record, revision)
    }
    engine.onBreach = { [unowned self] in breach($0) }
    engine.onStored = { [unowned self] frame, partition in stored(frame, in: partition) }
    sessions.onMessage = { [unowned self] payload, topic in delivered(payload, topic) }
    sessions.onBreach = { [unowned self] in breach($0) }
    for place in 0..<3 { start("m\(place)") }
    guard seed.isMultiple(of: 2) else { return }
    time.plan(within: 2000...10_000) { [unowned self] in upgrade(members[0]) }
  }

  private func start(_ name: String) {
    lives += 1
    let isLater = isFaulty ? upgraded.contains(name) : !upgraded.isEmpty
    members.append(SimulatedMember(name, life: lives, isLater: isLater, in: self))
  }

  // MARK: - Devices and partitions

  func partition(ofDevice device: Int) -> Partition {
    Partition(of: registry.devices[device].id, count: Self.partitions)
  }

  func devices(of partition: Partition) -> [Int] {
    registry.devices.indices.filter {
      registry.devices[$0].group == nil && self.partition(ofDevice: $0) == partition
    }
  }

  func keys(of partition: Partition) -> [KeyIndex] {
    devices(of: partition).flatMap { deviceKeys[$0] }
  }

  // MARK: - What happens

  /// Runs `count` steps, then without faults until nothing waits.
  package func live(steps count: Int) {
    while steps < count, breach == nil {
      steps += 1
      if let next = time.next, time.random.chance(75) || next <= time.now {
        time.runNext()
      } else {
        act()
      }
    }
    guard breach == nil else { return }
    endFaults()
  }

  private func act() {
    switch time.random.below(4000) {
    case ..<3935: ask()
    case ..<3940: forget()
    case ..<3950: kill()
    case ..<3960: pause()
    case ..<3967:
      elect()
    case ..<3968:
      say("the engine is away")
      seen.outages += 1
      engine.loseLeader(for: .milliseconds(time.random.within(6000...40_000)))
    case ..<3975: cut()
    case ..<3980:
      say("the broker ends all connections")
      sessions.endAll()
    case ..<3985:
      // The broker publishes the will of a member that lives: its connection was lost.
      let name = members[time.random.below(members.count)].name
      publishWill(of: name)
    case ..<3990: leave()
    case ..<3997: upgrade(members[time.random.below(members.count)])
    default:
      if members.count < 5 { start("n\(lives)") }
    }
  }

  /// A client asks for something.
  private func ask() {
    let device = time.random.below(registry.devices.count)
    let key = deviceKeys[device][time.random.below(deviceKeys[device].count)]
    ask(verb(for: key), of: key)
  }

  private func verb(for key: KeyIndex) -> ClientRequest.Verb {
    switch time.random.below(100) {
    case ..<5: .flush
    case ..<9: .cancel
    case _ where isStop(key): .stop
    case ..<17: .setNow
    default: .set
    }
  }

  private func ask(_ verb: ClientRequest.Verb, of key: KeyIndex) {
    let device = registry.device(of: key)
    let partition = isGroup(key) ? nil : partition(ofDevice: device)
    // Half of the clients know who drives the device.
    let owner = time.random.chance(50) ? nil : partition
    let able = members.filter { member in
      owner.map { member.accepts($0) } ?? (member.isUp && !member.isPaused)
    }
    guard !able.isEmpty else { return seen.unreachable += 1 }
    let member = able[time.random.below(able.count)]
    let wantsPhases = time.random.chance(20)
    let request = requests.ask(
      verb,
      of: key,
      device,
      partition,
      at: member,
      wantsPhases: wantsPhases
    )
    switch verb {
    case .set, .setNow: if partition == nil { seen.groups += 1 }
    case .stop: seen.stops += 1
    case .flush: seen.flushes += 1
    case .cancel: seen.cancels += 1
    }
    member.ask(request)
  }

  /// The part of a group's request that is about one member's device.
  func part(
    of whole: ClientRequest,
    for key: KeyIndex,
    _ change: (change: PassedChange, value: Int)? = nil
  ) -> ClientRequest {
    let device = registry.device(of: key)
    return requests.ask(
      whole.verb,
      of: key,
      device,
      partition(ofDevice: device),
      at: whole.asked,
      wantsPhases: change != nil,
      part: change,
      whole: whole
    )
  }

  private func isGroup(_ key: KeyIndex) -> Bool {
    registry.devices[registry.device(of: key)].group != nil
  }

  func isStop(_ key: KeyIndex) -> Bool { registry[key].property.id == ClusterHouse.stop }

  /// The servers of the engine lose power, and what they had not written.
  private func forget() {
    let partitions = engine.forget(time.random.within(1...8))
    say("the engine forgets entries of \(partitions.sorted())")
    seen.forgotten += partitions.count
    forgotten.formUnion(partitions)
    wereForgotten.formUnion(partitions)
    elect()
  }

  /// The owner of a partition finds that the engine has forgotten entries.
  func shortened(_ partition: Partition, of member: SimulatedMember) {
    if !wereForgotten.contains(partition) {
      breach("\(member.name) takes the log of \(partition) for shorter than it is")
    }
  }

  /// The engine has stored an entry of a log.
  private func stored(_ frame: LogFrame, in partition: Partition) {
    guard forgotten.contains(partition) else { return }
    switch frame.kind {
    case .claim:
      // Nobody knows what the owner before had, if it has not written it again.
      for key in keys(of: partition) { ledger.forgotten(Int(key.rawValue)) }
    case .snapshot(let part, let count) where part == count - 1: seen.writtenAgain += 1
    case .snapshot, .changes: return
    }
    forgotten.remove(partition)
  }

  private func kill() { kill(members[time.random.below(members.count)]) }

  func kill(_ member: SimulatedMember) {
    members.removeAll { $0 === member }
    say("\(member.name) is killed")
    seen.kills += 1
    member.kill()
    publishWill(of: member.name)
    time.plan(within: 300...20_000) { [unowned self] in start(member.name) }
    if members.isEmpty { start("n\(lives)") }
  }

  private func publishWill(of name: String) {
    for member in members where member.name != name {
      time.plan(within: 1...60) { member.receive { member.willSeen(of: name) } }
    }
  }

  private func upgrade(_ member: SimulatedMember) {
    guard upgraded.insert(member.name).inserted else { return }
    say("\(member.name) gets a later version")
    seen.upgrades += 1
    kill(member)
  }

  private func pause() {
    let member = members[time.random.below(members.count)]
    let length = time.random.within(200...16_000)
    say("\(member.name) is stopped for \(length) ms")
    seen.pauses += 1
    member.pause(for: .milliseconds(length))
  }

  private func cut() {
    let name = members[time.random.below(members.count)].name
    let length = Duration.milliseconds(time.random.within(500...20_000))
    if time.random.chance(60) {
      say("\(name) is cut from the engine for \(length)")
      seen.cuts += 1
      engine.cut(name, for: length)
    } else {
      say("\(name) is cut from the broker for \(length)")
      seen.cuts += 1
      sessions.cut(name, for: length)
    }
  }

  private func elect() {
    say("the engine elects a leader")
    seen.elections += 1
    let length = Duration.milliseconds(time.random.within(500...6000))
    engine.loseLeader(for: length)
    for member in members {
      // A watch may show nothing although it is alive.
      if time.random.chance(30) {
        deafUntil[member.life] = time.now.advanced(
          by: .milliseconds(time.random.within(1000...20_000))
        )
      }
      time.plan(after: length + .milliseconds(time.random.within(0...600))) {
        member.receive { member.readNewest() }
      }
    }
  }

  private func leave() {
    guard members.count > 2 else { return }
    let member = members[time.random.below(members.count)]
    say("\(member.name) leaves")
    member.receive { member.leave() }
  }

  /// Tells every member of a changed record, sometimes late, sometimes not at all.
  private func tell(_ key: RecordKey, _ record: ClusterRecord, _ revision: UInt64) {
    for member in members {
      if isFaulty, time.random.chance(3) {
        // What watches is lost; the member finds out, and reads everything.
        time.plan(within: 1000...6000) { member.receive { member.readAll() } }
        continue
      }
      if isFaulty, deafUntil[member.life] ?? .zero > time.now {
        seen.unheard += 1
        time.plan(within: 0...600) { member.receive { member.readNewest() } }
        continue
      }
      time.plan(within: 1...40) { [self] in
        guard engine.reaches(member.name) else {
          time.plan(within: 1000...4000) { member.receive { member.readAll() } }
          return
        }
        member.receive { member.observe(key, record, revision) }
      }
    }
  }

  // MARK: - Messages between members

  private struct Link: Hashable {
    let life: Int
    let receiver: String
  }

  /// Sends a message through the engine, after earlier ones on the same way.
  ///
  /// One that nobody receives is lost; its sender may be told that it was not delivered, or not.
  func send(
    from sender: SimulatedMember,
    to name: String,
    _ deliver: @escaping (SimulatedMember) -> Void,
    onLost: @escaping () -> Void = {},
    onUndelivered: @escaping () -> Void = {}
  ) {
    let link = Link(life: sender.life, receiver: name)
    let isSlow = isFaulty && time.random.chance(3)
    let delay = Duration.milliseconds(time.random.within(isSlow ? 100...1500 : 1...10))
    let moment = max(time.now.advanced(by: delay), links[link] ?? .zero)
    links[link] = moment
    let wasConnected = engine.isConnected(sender.name)
    time.plan(at: moment) { [self] in
      if let receiver = members.first(where: { $0.name == name }),
        wasConnected, engine.isConnected(name)
      {
        return receiver.receive { deliver(receiver) }
      }
      onLost()
      if time.random.chance(70) { time.plan(within: 1...20) { sender.receive(onUndelivered) } }
    }
  }

  func undelivered() { seen.undelivered += 1 }

  func moved() { seen.moved += 1 }

  func performed() { seen.performed += 1 }

  // MARK: - Reports of the members

  /// A member executes what a client has asked for.
  ///
  /// - Returns: The order of the change among all that members have executed.
  func executed(_ request: ClientRequest) -> Int {
    if let wrong = requests.executed(request) { breach(wrong) }
    order += 1
    say("request \(request.number), \(request.verb), is executed as \(order)")
    return order
  }

  /// The change was taken; `value` is what it sets.
  func taken(_ order: Int, as value: Int, of key: KeyIndex, _ verb: ClientRequest.Verb) {
    say("\(order) is to \(verb) \(registry[key].key)")
    let key = Int(key.rawValue)
    switch verb {
    case .flush: ledger.flushed(key)
    case .cancel: ledger.ended(key)
    case .set, .setNow, .stop:
      let isHurried = verb == .setNow
      ledger.executed(order, as: value, of: key, isHurried: isHurried, at: time.now)
      if verb == .stop { ledger.stopped(by: key) }
    }
  }

  /// A client gets no further reply.
  func ended(_ request: ClientRequest, _ failure: PassedFailure?) {
    say("request \(request.number) ends: \(failure.map { "\($0)" } ?? "answered")")
    if let wrong = requests.ended(request, failure) { breach(wrong) }
    if let whole = request.whole, whole.openParts > 0 {
      whole.openParts -= 1
      if whole.openParts == 0 { ended(whole, nil) }
    }
    switch failure {
    case nil: break
    case .noOwner: seen.withoutOwner += 1
    case .overtaken: seen.overtakenRequests += 1
    case .ended: seen.ownersEnded += 1
    case .silent: seen.silentOwners += 1
    }
  }

  func refused(_ key: KeyIndex) { seen.refused += 1 }

  func couldNotRead() { seen.unreadable += 1 }

  func unanswered(_ event: CommandEvent) { seen.unanswered += 1 }

  func emitted(_ event: CommandEvent) {
    let key = Int(event.key.rawValue)
    // A stop has no number of its own.
    let stop = isStop(event.key) ? event.origin.map { Int($0.replyTo) } : nil
    guard let value = stop ?? event.value?.whole else { return }
    let order = ledger.order(of: value, of: key)
    say(
      "\(registry[event.key].key) \(order) is \(event.phase)\(event.reason.map { ": \($0)" } ?? "")"
    )
    switch event.phase {
    case .accepted where isGroup(event.key): groupAccepted(event, value)
    case .accepted where event.reason == nil:
      ledger.accepted(order, of: key)
    case .accepted: seen.inMemory += 1
    case .cancelled: ledger.cancelled(order, of: key)
    case .rejected:
      seen.rejected += 1
    default: break
    }
  }

  /// A group's change that is accepted without a reason is stored for each of its members.
  private func groupAccepted(_ event: CommandEvent, _ value: Int) {
    guard event.reason == nil else { return seen.groupsInPart += 1 }
    for member in registry.groups.members(of: event.key)
    where !ledger.holds(value, of: Int(member.rawValue)) {
      breach("\(registry[event.key].key) is accepted, and \(registry[member].key) not stored")
    }
  }

  /// A member sends a command.
  ///
  /// - Returns: What the device gets: the order of the change.
  func sent(_ publish: CommandPublish, stop: Int?) -> [UInt8] {
    let key = Int(publish.keys[0].rawValue)
    if isStop(publish.keys[0]) {
      // One that another member left is the newest that was promised, or a newer one.
      return Array("\(max(stop ?? 0, ledger.keys[key].durable))".utf8)
    }
    let value = Int(String(decoding: publish.payload, as: UTF8.self)) ?? 0
    let order = ledger.order(of: value, of: key)
    if let wrong = ledger.sent(order, of: key, at: time.now) {
      breach("\(registry[publish.keys[0]].key): \(wrong)")
    }
    return Array("\(order)".utf8)
  }

  private func delivered(_ payload: [UInt8], _ topic: String) {
    guard let order = Int(String(decoding: payload, as: UTF8.self)),
      let key = registry.properties.firstIndex(where: { $0.property.command.topic == topic })
    else { return breach("a message that nobody expects on \(topic)") }
    say("\(topic) gets \(order)")
    if registry.properties[key].property.id == ClusterHouse.stop {
      return ledger.stopDelivered(order, of: key, at: time.now)
    }
    if let wrong = ledger.delivered(order, of: key) { breach("\(topic): \(wrong)") }
  }

  func noticed(_ notice: MembershipNotice) {
    say("\(notice)")
    switch notice {
    case .joined: seen.joins += 1
    case .evicting: seen.evictions += 1
    case .wasEvicted: seen.wereEvicted += 1
    case .otherDevices, .sameDevices: break
    }
  }

  func left(_ member: SimulatedMember) {
    say("\(member.name) has left")
    seen.departures += 1
    member.kill()
    members.removeAll { $0 === member }
    if members.isEmpty { start("n\(lives)") }
  }

  func breach(_ text: String) {
    guard breach == nil else { return }
    breach = "\(text) at \(time.now.nanoseconds / 1_000_000) ms, after \(steps) steps"
    say("VIOLATED: \(text)")
  }

  func say(_ line: @autoclosure () -> String) {
    guard let listener else { return }
    listener("\(time.now.nanoseconds / 1_000_000) ms: \(line())")
  }

  // MARK: - The end

  /// Lets everything recover, and checks what was promised.
  private func endFaults() {
    isFaulty = false
    engine.heal()
    sessions.heal()
    for member in members { time.plan(within: 1...100) { member.receive { member.readAll() } } }
    // What the others cannot read has an owner again when all have the same version.
    if !upgraded.isEmpty { for member in members { upgrade(member) } }
    let end = time.now.advanced(by: .seconds(90))
    while let next = time.next, next <= end, breach == nil {
      steps += 1
      time.runNext()
    }
    seen.add(ledger, engine, sessions)
    guard breach == nil else { return }
    for (key, order) in ledger.lost {
      return breach("\(registry.properties[key].key) lost \(order), which was accepted")
    }
    if let request = requests.open.first {
      return breach("request \(request.number), asked at \(request.asked.name), has no end")
    }
    var counts: [Int] = []
    var owned: [Partition: [String]] = [:]
    for member in members {
      counts.append(member.drivenPartitions.count)
      for partition in member.drivenPartitions { owned[partition, default: []].append(member.name) }
    }
    for partition in Self.all {
      guard let names = owned[partition] else { return breach("nobody drives \(partition)") }
      if names.count > 1 { return breach("\(names) drive \(partition)") }
      var contents = LogContents()
      for frame in engine.logs[partition] ?? [] { contents.append(frame) }
      // An owner finds out with its next entry that the engine has forgotten some.
      if let row = contents.ordered.first, !forgotten.contains(partition) {
        return breach("\(row.row.key) is still in the log of \(partition)")
      }
    }
    if let least = counts.min(), let most = counts.max(), most - least > 1 {
      breach("the members have \(counts) partitions")
    }
  }
}

extension Value {
  /// A whole number.
  fileprivate var whole: Int? {
    if case .number(let number) = self { Int(number) } else { nil }
  }
}
