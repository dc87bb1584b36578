// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut

/// Commands that have settled and wait to be sent: one per key, and of an action several, in order.
///
/// It decides which key is next, and which command has waited too long. A command waits in the lane
/// of its device, unless something keeps it out: the broker or the device is offline, or that is
/// not known yet, the broker has not acknowledged the key's previous command, an older command of a
/// related key is to leave first, the key is withheld, or one of these keeps a command out that is
/// sent with it. While the broker or the device keeps it out its time to live runs.
package struct SendQueue {
  /// What keeps the command of one key out of its lane, beside an offline broker or device.
  private struct Hold {
    /// The command was sent before, and waits to be repeated.
    var hasRepetition = false
    /// The broker has not acknowledged the previous command.
    var awaitsAcknowledgement = false
    /// That one is urgent, and is sent again if the connection is lost.
    var isUrgent = false
    /// Nothing of the key may be sent.
    var isWithheld = false
    /// An urgent command may be sent although the key is withheld.
    var exceptsUrgent = false

    func blocks(_ command: borrowing Command) -> Bool {
      if awaitsAcknowledgement || command.change.rides { return true }
      guard isWithheld else { return false }
      // An urgent command that was sent once may be repeated, whatever it waited for then.
      return !(command.isUrgent && (exceptsUrgent || command.isRepeated))
    }
  }

  /// The first command of each key.
  private var commands: LazyArray<Command?>
  /// Those of actions behind it.
  private(set) var actions = WaitingActions()
  private var holds: LazyArray<Hold>
  private(set) var registry: Registry
  private(set) var facts: KeyArray<PropertyFacts>
  private var relations: LazyArray<Relations>
  private var availability: AvailabilityTable
  var lanes: LaneTable
  private var sleepers = SleeperTable()
  /// What the broker has not said yet.
  private(set) var retained = RetainedReports()
  /// What devices are asked for.
  var requests: StateRequests
  /// When commands expire whose broker or device is offline.
  private(set) var expiries: KeyDeadlines
  private(set) var isConnected = false
  /// The number of keys with a command, those that nothing keeps back included.
  private(set) var count = 0
  /// The number of keys whose previous command the broker has not acknowledged.
  private(set) var unacknowledgedCount = 0

  /// - Parameters:
  ///   - registry: The devices, with the names of their lanes.
  ///   - facts: What is asked of their properties.
  ///   - relations: Which of them are sent together.
  ///   - limits: The limits of lanes, by name.
  init(
    registry: Registry,
    _ facts: KeyArray<PropertyFacts>,
    _ relations: LazyArray<Relations>,
    limits: [String: LaneLimits]
  ) {
    self.registry = registry
    self.facts = facts
    self.relations = relations
    commands = LazyArray(repeating: nil, count: facts.count)
    holds = LazyArray(repeating: Hold(), count: facts.count)
    availability = AvailabilityTable(registry)
    lanes = LaneTable(registry: registry, limits: limits)
    expiries = KeyDeadlines(keys: facts.count)
    requests = StateRequests(keys: facts.count, devices: registry.devices.count)
  }

  /// The command of a key that is sent next.
  subscript(key: KeyIndex) -> Command? { commands[key] }

  /// Whether a key has a command.
  func hasCommand(_ key: KeyIndex) -> Bool { commands[key] != nil }

  /// How many commands of a key wait; more than one only of an action.
  package func commandCount(_ key: KeyIndex) -> Int {
    (hasCommand(key) ? 1 : 0) + actions.count(behind: key)
  }

  /// Whether another command of an action may wait.
  func hasRoomForAction(_ key: KeyIndex) -> Bool { commandCount(key) < WaitingActions.limit }

  /// Whether the command of a key waits to be repeated.
  @inline(__always)
  func hasRepetition(_ key: KeyIndex) -> Bool { holds[key].hasRepetition }

  /// Whether a key's device can be reached.
  func isOnline(_ key: KeyIndex) -> Bool { isConnected && isDeviceOnline(facts[key].device) }

  /// Whether commands of a key wait until its device reports itself.
  func isAsleep(_ key: KeyIndex) -> Bool { facts[key].sleeps && sleepers.isAsleep(key) }

  /// Whether a key's device can be reached, and listens.
  package func isReachable(_ key: KeyIndex) -> Bool { isOnline(key) && !isAsleep(key) }

  package func isDeviceOnline(_ device: Int) -> Bool { availability.isOnline(device) }

  /// Whether the broker has not acknowledged the key's previous command.
  func awaitsAcknowledgement(_ key: KeyIndex) -> Bool { holds[key].awaitsAcknowledgement }

  /// Whether nothing of a key may leave, except what is urgent.
  func isWithheld(_ key: KeyIndex) -> Bool { holds[key].isWithheld }

  /// The number of a key's lane.
  func lane(of key: KeyIndex) -> Int { lanes.lane(ofDevice: facts[key].device) }

  /// Whether nothing but its lane keeps the command of a key back.
  func isInLane(_ key: KeyIndex) -> Bool { lanes.contains(key) }

  /// Whether nothing of a key can be sent now that is not urgent, whatever its device does.
  func isBlocked(_ key: KeyIndex) -> Bool {
    holds[key].awaitsAcknowledgement || holds[key].isWithheld || isBehind(key)
  }

  /// Whether the newest command of `key` must not leave yet: an older one of a related key waits,
  /// or may have to be sent again.
  ///
  /// What is urgent and waits is older than everything that it ends, which would be gone otherwise.
  private func isBehind(_ key: KeyIndex) -> Bool {
    guard facts[key].isBehind else { return false }
    let isAction = facts[key].isAction
    return relations[key].ahead.contains { other in
      if isAction, facts[other].isAction {
        return commands[other] != nil && number(other) < number(key)
      }
      return holds[other].isUrgent || commands[other]?.isUrgent ?? false
    }
  }

  /// A key whose command is sent with that of `key`, which it contradicts, and cannot be sent yet.
  ///
  /// An urgent command does not wait for it.
  func blockedRider(of key: KeyIndex) -> KeyIndex? {
    guard facts[key].hasImplications, let command = commands[key], !command.isUrgent else {
      return nil
    }
    let companions = relations[key].mergeGroup
    let rider = relations[key].implying.first { other in
      guard let command = commands[other.key], command.change.rides else { return false }
      return companions.contains(other.key)
        && (isBlocked(other.key) || awaitsRetained(other.key))
    }
    return rider?.key
  }

  /// Puts the commands where they belong that the one of `key`, which rides, is sent with.
  private mutating func placeLeads(of key: KeyIndex) {
    for lead in relations[key].implied {
      guard let command = commands[lead.key], !command.change.rides else { continue }
      place(lead.key)
    }
  }

  /// Puts the commands where they belong that wait for those of `key`.
  private mutating func placeBehind(_ key: KeyIndex) {
    guard facts[key].isAhead else { return }
    for other in relations[key].behind { place(other) }
  }

  /// Whether the command of `key` waits for its device alone, which is offline or asleep, or not
  /// known to be online.
  func waitsForDevice(_ key: KeyIndex) -> Bool {
    guard let command = commands[key], !holds[key].blocks(command), !isBehind(key),
      blockedRider(of: key) == nil
    else { return false }
    return !isDeviceOnline(facts[key].device) || isAsleep(key) || awaitsRetained(key)
  }

  /// Whether a command of `key` waits for what the broker retains of its device: its availability,
  /// and, for a value of an earlier process, its state too.
  ///
  /// An urgent value of this process does not.
  func awaitsRetained(_ key: KeyIndex) -> Bool {
    guard retained.areMissing else { return false }
    let isUnknown = awaitsAvailability(of: facts[key].device)
    guard let command = commands[key] else { return isUnknown }
    if command.change.isReplayed {
      return isUnknown || facts[key].isReported && !retained.knows(key, ofDevice: facts[key].device)
    }
    return isUnknown && !command.isUrgent
  }

  /// Whether the state of `key` that was reported last says nothing: its device was offline or told
  /// to stop since, or will be, or the broker may still send one that it retains.
  func isStale(_ key: KeyIndex) -> Bool {
    facts[key].isReported
      && (retained.isOutdated(key) || isBehind(key)
        || !retained.knows(key, ofDevice: facts[key].device))
  }

  /// Whether the broker has not said yet whether a device is online.
  package func awaitsAvailability(of device: Int) -> Bool {
    guard retained.areMissing else { return false }
    return !retained.knows(device, sources: registry.availability(ofDevice: device).count)
  }

  /// The keys whose commands, if they have any, are sent in one message with that of `lead`, which
  /// is among them; in order of definition.
  func companions(of lead: KeyIndex) -> [KeyIndex] {
    let group = relations[lead].mergeGroup
    guard !group.isEmpty else { return [lead] }
    return group.filter {
      $0 == lead || !(isBlocked($0) || awaitsRetained($0))
    }
  }

  /// Why the command of `key` cannot be sent, where its broker or its device keep it back.
  func waitReason(of key: KeyIndex) -> String {
    if !isOnline(key) { return offlineReason }
    return awaitsRetained(key) ? "the device's availability is not known yet" : SleeperTable.reason
  }

  /// Why a device that is not online cannot be reached.
  var offlineReason: String {
    isConnected ? "the device is offline" : "the broker is not connected"
  }

  /// Whether anything can be sent, now or when its lane has a token.
  package var hasReady: Bool { lanes.count > 0 }

  // MARK: - In and out

  /// Adds a command: an action behind those that wait, anything else in place of an older one,
  /// whose place in the lane it keeps.
  ///
  /// - Returns: Whether it can wait; a momentary command for an offline device cannot.
  mutating func insert(_ command: Command, for key: KeyIndex) -> Bool {
    if commands[key] == nil {
      count += 1
    } else if facts[key].isAction {
      actions.append(command, for: key)
      return true
    }
    commands[key] = command
    holds[key].hasRepetition = command.isRepeated
    placeBehind(key)
    return place(key)
  }

  /// Lets the command of a key leave with the one that it contradicts, or not at all; or, if it
  /// rides no more, alone.
  mutating func ride(_ key: KeyIndex, _ rides: Bool = true) {
    commands[key]?.change.rides = rides
    place(key)
    if !rides { placeLeads(of: key) }
  }

  /// Removes the command of a key that is sent next; of an action, the one behind it moves up.
  mutating func remove(_ key: KeyIndex) -> Command? {
    guard let command = commands[key].take() else { return nil }
    holds[key].hasRepetition = false
    count -= 1
    lanes.remove(key, device: facts[key].device)
    expiries.remove(key)
    if facts[key].sleeps { sleepers.end(key) }
    if !actions.isEmpty, let next = actions.popFirst(of: key) {
      count += 1
      commands[key] = next
      place(key)
    }
    placeBehind(key)
    if command.change.rides { placeLeads(of: key) }
    return command
  }

  /// The key that may be sent next; `nil` when there is none.
  ///
  /// With `ignoresLimits`, lanes without a token are asked too.
  mutating func next(at now: Moment, ignoresLimits: Bool) -> KeyIndex? {
    guard isConnected else { return nil }
    return lanes.next(at: now, ignoresLimits: ignoresLimits)
  }

  /// The command of `key` is sent next: its device has had its turn.
  mutating func takeTurn(_ key: KeyIndex) {
    guard let flow = commands[key]?.change.flow else { return }
    lanes.takeTurn(key, device: facts[key].device, flow: flow)
  }

  /// Removes the commands that are sent in one message, which costs one token; `group` is the key
  /// of the group that it is for.
  ///
  /// Nothing more of these keys is sent until ``acknowledge(_:)``.
  mutating func dequeue(_ keys: [KeyIndex], for group: KeyIndex? = nil, at now: Moment) -> [Command]
  {
    // First, so that an action behind one of them does not join its lane.
    for key in keys {
      holds[key].awaitsAcknowledgement = true
      holds[key].isUrgent = !facts[key].isAction && commands[key]?.isUrgent ?? false
    }
    let commands = keys.compactMap { remove($0) }
    if let lead = keys.first {
      let isPlain = commands.allSatisfy { !$0.isRepeated && $0.transitionTime == .zero }
      // How soon a sleeping device confirms says nothing about the mesh.
      let isMeasured = isPlain && !facts[lead].sleeps
      if facts[lead].isAction { lanes.keepRoom(of: group ?? lead) }
      lanes.sent(
        group ?? lead,
        carrying: group == nil ? [] : keys,
        device: facts[lead].device,
        isMeasured: isMeasured,
        at: now
      )
    }
    unacknowledgedCount += keys.count
    return commands
  }

  /// When a lane that holds something back has its next token; `nil` when none does.
  func nextToken(after now: Moment) -> Moment? { isConnected ? lanes.nextToken(after: now) : nil }

  /// When the first command has waited too long for its broker or device.
  @inline(__always)
  var nextExpiry: Moment? { expiries.first }

  /// A key whose command has waited too long, once; the caller removes the command.
  mutating func popExpired(at now: Moment) -> KeyIndex? { expiries.popFirst(at: now) }

  // MARK: - Commands in flight

  /// The command of `key` ended.
  mutating func ended(_ key: KeyIndex, isConfirmed: Bool, at now: Moment) {
    if isConfirmed { lanes.confirmed(key, at: now) } else { lanes.ended(key) }
  }

  /// The command of `key` was not confirmed in time.
  ///
  /// A device that has gone to sleep again says nothing about its lane.
  mutating func lost(_ key: KeyIndex, at now: Moment) {
    if facts[key].sleeps { lanes.ended(key) } else { lanes.lost(key, at: now) }
  }

  /// When the first command in flight is presumed to have ended, which makes room in its lane.
  @inline(__always)
  var nextPresumption: Moment? { lanes.nextPresumption }

  // MARK: - What commands wait for

  /// The broker acknowledged the key's previous command, or will never do so.
  mutating func acknowledge(_ key: KeyIndex) {
    guard holds[key].awaitsAcknowledgement else { return }
    holds[key].awaitsAcknowledgement = false
    holds[key].isUrgent = false
    unacknowledgedCount -= 1
    place(key)
    placeBehind(key)
  }

  /// Sends nothing of `key` until ``release(_:)``; with `exceptUrgent`, nothing but an urgent
  /// value.
  mutating func withhold(_ key: KeyIndex, exceptUrgent: Bool) {
    holds[key].isWithheld = true
    holds[key].exceptsUrgent = exceptUrgent
    place(key)
  }

  mutating func release(_ key: KeyIndex) {
    guard holds[key].isWithheld else { return }
    holds[key].isWithheld = false
    place(key)
  }

  /// The connection to the broker was made or ended.
  ///
  /// `hasRetained`: the broker sends what it retains, until ``retainedCompleted(of:)``.
  ///
  /// - Returns: The keys whose commands cannot wait, see ``insert(_:for:)``.
  mutating func connectionChanged(
    isUp: Bool,
    hasRetained: Bool = false,
    at now: Moment
  ) -> [KeyIndex] {
    guard isUp != isConnected else { return [] }
    isConnected = isUp
    if isUp, hasRetained { retained.begin(at: now) } else { retained.complete(nil) }
    sleepers.endAll()
    renewRequests(at: now)
    guard count > 0 else { return [] }
    return place(facts.keys.filter { commands[$0] != nil })
  }

  /// One of a device's availability sources reported.
  ///
  /// Its commands join their lane in the order of their changes.
  ///
  /// - Returns: The keys whose commands cannot wait, see ``insert(_:for:)``.
  mutating func availabilityChanged(
    of device: Int,
    source: Int,
    isOnline: Bool
  ) -> [KeyIndex] {
    availability.reset(device)
    let isChanged = availability.report(isOnline, source: source, of: device)
    if !isOnline {
      for key in keys(of: [device]) { outdate(key) }
    }
    guard isChanged || retained.areMissing else { return [] }
    retained.heard(source, of: device)
    if isChanged { wantStates(ofDevice: device) }
    return place(inOrderOfChanges(keys(of: [device])))
  }

  /// Another gateway listens to the availability sources of a device from now on.
  mutating func forgetAvailability(of device: Int) { availability.forget(device) }

  /// The state of a key that was reported last says nothing until the next report.
  mutating func outdate(_ key: KeyIndex) {
    if facts[key].isReported { retained.outdate(key) }
  }

  /// A device reported the state of a key.
  mutating func reported(_ key: KeyIndex) {
    stateKnown(of: key)
    let device = facts[key].device
    retained.heard(key, of: device, isOffline: !availability.isOnline(device))
    if retained.areMissing { place(key) }
  }

  /// The connection of some devices was made: the broker sends what it retains of them, until
  /// ``retainedCompleted(of:)``.
  mutating func retainedFollow(of devices: [Int], at now: Moment) {
    retained.begin(devices, keys(of: devices), at: now)
  }

  /// The broker has sent what it retains of these devices, `nil` for all: commands that waited for
  /// it join their lanes in the order of their changes.
  ///
  /// - Returns: The keys whose commands cannot wait, see ``insert(_:for:)``.
  mutating func retainedCompleted(of devices: [Int]?) -> [KeyIndex] {
    guard retained.areMissing else { return [] }
    retained.complete(devices)
    guard count > 0 else { return [] }
    return place(inOrderOfChanges(devices.map(keys(of:)) ?? Array(facts.keys)))
  }

  /// Waits no longer for what the broker has not sent in time.
  ///
  /// - Returns: The keys whose commands cannot wait, see ``insert(_:for:)``.
  mutating func retainedOverdue(at now: Moment) -> [KeyIndex] {
    retained.giveUp(at: now)
    return count > 0 ? place(inOrderOfChanges(facts.keys)) : []
  }

  private func keys(of devices: [Int]) -> [KeyIndex] {
    devices.flatMap { registry.indices(ofDevice: $0).map { KeyIndex($0) } }
  }

  /// A sleeping device reported itself: its commands join their lane in the order of their changes.
  mutating func deviceAwoke(_ device: Int) {
    for key in inOrderOfChanges(keys(of: [device])) {
      sleepers.wake(key)
      place(key)
    }
    wantStates(ofDevice: device, isAwake: true)
  }

  /// Puts a command where it belongs: into its lane, or out of it.
  ///
  /// Only where a party went offline can it be one that cannot wait.
  ///
  /// - Returns: Whether it can wait, see ``insert(_:for:)``.
  @discardableResult
  mutating func place(_ key: KeyIndex) -> Bool {
    guard let command = commands[key] else { return true }
    let isAsleep = isAsleep(key)
    let isAwaited = awaitsRetained(key)
    if isOnline(key), !isAsleep, !isAwaited {
      expiries.remove(key)
    } else if facts[key].isAction, !isOnline(key) || isAsleep {
      return false
    } else {
      expiries.set(key, at: command.change.expiresAt)
    }
    let device = facts[key].device
    let mayLeave =
      !isAsleep && !isAwaited && !holds[key].blocks(command) && !isBehind(key)
      && blockedRider(of: key) == nil
    if isDeviceOnline(device), mayLeave {
      lanes.add(key, device: device, isUrgent: command.isUrgent, flow: command.change.flow)
    } else {
      lanes.remove(key, device: device)
    }
    if command.change.rides { placeLeads(of: key) }
    return true
  }

  private mutating func place(_ keys: [KeyIndex]) -> [KeyIndex] {
    var unable: [KeyIndex] = []
    for key in keys where !place(key) { unable.append(key) }
    return unable
  }

  private func inOrderOfChanges(_ keys: some Sequence<KeyIndex>) -> [KeyIndex] {
    keys.filter { commands[$0] != nil }.sorted { number($0) < number($1) }
  }

  private func number(_ key: KeyIndex) -> UInt64 { commands[key]?.change.number ?? 0 }

  // MARK: - Reload

  /// Makes room for more keys and devices.
  mutating func extend(keys: Int, devices: Int) {
    commands.extend(to: keys)
    holds.extend(to: keys)
    expiries.extend(keys: keys)
    lanes.extend(keys: keys, devices: devices)
    requests.extend(keys: keys, devices: devices)
    availability.extend(devices: devices)
  }

  /// Continues with other definitions.
  ///
  /// What waits stays where it is until ``place(_:)``, and ``renewDevice(_:)`` follows for each
  /// device.
  mutating func replace(_ definitions: DefinitionReload, at now: Moment) {
    registry = definitions.registry
    facts = definitions.facts
    relations = definitions.relations
    lanes.replace(definitions.lanes, at: now)
    availability.replaceSources(of: definitions.hasOtherSources)
  }

  /// Gives a device its new lane, and forgets what it reported by availability sources that it no
  /// longer has.
  mutating func renewDevice(_ device: Int) {
    lanes.moveDevice(device)
    requests.move(device, to: lanes.lane(ofDevice: device))
    availability.reset(device)
  }
}
