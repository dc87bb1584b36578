// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The lanes: each limits how fast commands are sent to one mesh or bus, and keeps their order.
///
/// In a lane urgent keys go first, then device by device in turn. A key is in its lane at most once
/// and leaves it at once when it has nothing to send any more, so a token is never kept for
/// something that is gone. All operations take constant time.
///
/// In the lane without a limit many keys that settle at one instant do not hold up the ones after
/// them: while more than ``backlog`` wait, every other command is of the device that came last. The
/// oldest still get half of the turns, so nothing waits for ever.
struct LaneTable {
  private struct Lane {
    var bucket: TokenBucket?
    var urgent = LinkTable.List()
    /// Devices with something to send, in turn.
    var turn = LinkTable.List()
    var count = 0
    /// Whether the next command is of the device that came last, if many wait.
    var isForNewest = false
  }

  private struct Owner {
    /// The lane that ``keys`` are in.
    var lane = 0
    var keys = LinkTable.List()
  }

  /// Where a key waits.
  private enum Place: Equatable {
    case nowhere
    case urgent(lane: Int32)
    /// In the lane of its device.
    case inTurn
  }

  /// How many keys may wait without a limit in their order alone: a few times what is in flight to a
  /// broker at once.
  static let backlog = 64

  private var lanes = [Lane()]
  private var owners: [Owner] = []
  private var places = KeyArray<Place>()
  /// Keys are nodes here.
  private var keyLinks = LinkTable(nodes: 0)
  /// Devices are nodes here.
  private var turnLinks = LinkTable(nodes: 0)
  /// Where the search for the next command goes on, so that no lane starves another.
  private var cursor = 0
  /// How many keys wait, in all lanes.
  private(set) var count = 0
  /// The lanes that have or had a limit, by name.
  private var numbers: [String: Int] = [:]
  /// The lane of each device, where an owner's keys move when it is touched.
  private var laneOfDevice: [Int] = []

  /// The lanes of all devices, empty; the first is for everything that has no limit.
  ///
  /// `limits` has the tokens a second and the burst, by lane.
  init(registry: Registry, limits: [String: (rate: Double, burst: Int)]) {
    var assignment = assignment(limits: limits)
    for device in registry.devices { assignment.add(device) }
    extend(keys: registry.properties.count, devices: registry.devices.count)
    replace(assignment, at: .zero)
  }

  /// Lets a key wait in its device's lane; one that waits already keeps its place, unless it has
  /// become urgent or ceased to be.
  mutating func add(_ key: KeyIndex, device: Int, isUrgent: Bool) {
    moveDevice(device)
    let lane = owners[device].lane
    let wanted: Place = isUrgent ? .urgent(lane: Int32(lane)) : .inTurn
    guard places[key] != wanted else { return }
    remove(key, device: device)
    places[key] = wanted
    count += 1
    lanes[lane].count += 1
    if isUrgent { return keyLinks.append(key.rawValue, to: &lanes[lane].urgent) }
    if owners[device].keys.isEmpty { turnLinks.append(Int32(device), to: &lanes[lane].turn) }
    keyLinks.append(key.rawValue, to: &owners[device].keys)
  }

  /// Removes a key from its lane, if it is in it.
  mutating func remove(_ key: KeyIndex, device: Int) {
    let lane: Int
    switch places[key] {
    case .nowhere: return
    case .urgent(let number):
      lane = Int(number)
      keyLinks.remove(key.rawValue, from: &lanes[lane].urgent)
    case .inTurn:
      lane = owners[device].lane
      keyLinks.remove(key.rawValue, from: &owners[device].keys)
      if owners[device].keys.isEmpty { turnLinks.remove(Int32(device), from: &lanes[lane].turn) }
    }
    places[key] = .nowhere
    count -= 1
    lanes[lane].count -= 1
  }

  /// The key that may leave next, which stays where it is; the lanes get their turn one by one.
  ///
  /// With `ignoresLimits` lanes without a token are asked too.
  mutating func next(at now: Moment, ignoresLimits: Bool) -> KeyIndex? {
    guard count > 0 else { return nil }
    for step in lanes.indices {
      let lane = (cursor + step) % lanes.count
      guard lanes[lane].count > 0, ignoresLimits || hasToken(lane, at: now) else { continue }
      cursor = (lane + 1) % lanes.count
      if !lanes[lane].urgent.isEmpty { return KeyIndex(lanes[lane].urgent.head) }
      let turn = lanes[lane].turn
      let isNewest = lanes[lane].isForNewest && hasBacklog(lane)
      return KeyIndex(owners[Int(isNewest ? turn.tail : turn.head)].keys.head)
    }
    return nil
  }

  private func hasBacklog(_ lane: Int) -> Bool {
    lanes[lane].bucket == nil && lanes[lane].count > Self.backlog
  }

  private func hasToken(_ lane: Int, at now: Moment) -> Bool {
    lanes[lane].bucket.map { $0.nextToken(after: now) <= now } ?? true
  }

  /// A message for `device` was sent: it takes a token, and the device has had its turn.
  mutating func sent(device: Int, at now: Moment) {
    let lane = owners[device].lane
    _ = lanes[lane].bucket?.take(at: now)
    lanes[lane].isForNewest.toggle()
    guard !owners[device].keys.isEmpty else { return }
    turnLinks.remove(Int32(device), from: &lanes[lane].turn)
    turnLinks.append(Int32(device), to: &lanes[lane].turn)
  }

  /// When a lane that holds something back gets its next token; `nil` when none does.
  func nextToken(after now: Moment) -> Moment? {
    guard count > 0 else { return nil }
    var earliest: Moment?
    for lane in lanes where lane.count > 0 {
      guard let token = lane.bucket?.nextToken(after: now), token > now else { continue }
      earliest = min(earliest ?? token, token)
    }
    return earliest
  }

  // MARK: - Reload

  /// Makes room for more keys and devices.
  mutating func extend(keys: Int, devices: Int) {
    places.extend(to: keys, with: .nowhere)
    keyLinks.extend(toNodes: keys)
    turnLinks.extend(toNodes: devices)
    while owners.count < devices { owners.append(Owner()) }
  }

  /// Begins to assign devices to lanes under other limits: each of these lanes gets a number.
  mutating func assignment(limits: [String: (rate: Double, burst: Int)]) -> LaneAssignment {
    for name in limits.keys.sorted() where numbers[name] == nil {
      numbers[name] = lanes.count
      lanes.append(Lane())
    }
    return LaneAssignment(limits: limits, numbers: numbers)
  }

  /// Continues with other lanes, which has no effect on a device until it is touched.
  ///
  /// Lanes keep their tokens and what waits in them. Takes time in proportion to the lanes.
  mutating func replace(_ assignment: LaneAssignment, at now: Moment) {
    laneOfDevice = assignment.laneOfDevice
    for (name, number) in numbers {
      lanes[number].bucket = assignment.limits[name].map { limit in
        lanes[number].bucket?.limited(rate: limit.rate, burst: limit.burst, at: now)
          ?? TokenBucket(rate: limit.rate, burst: limit.burst)
      }
    }
  }

  /// Moves what waits of a device to its lane, behind what waits there; an urgent key stays until it
  /// is added again.
  mutating func moveDevice(_ device: Int) {
    let (old, new) = (owners[device].lane, laneOfDevice[device])
    guard old != new else { return }
    owners[device].lane = new
    guard !owners[device].keys.isEmpty else { return }
    let keyCount = keyLinks.nodes(of: owners[device].keys).count
    turnLinks.remove(Int32(device), from: &lanes[old].turn)
    lanes[old].count -= keyCount
    turnLinks.append(Int32(device), to: &lanes[new].turn)
    lanes[new].count += keyCount
  }

  // MARK: - Forecast

  /// When each waiting key gets its token, if nothing is added or removed.
  ///
  /// `companions` names the keys that are sent in the message of another one. Takes time in
  /// proportion to the keys that wait.
  func sendTimes(
    after now: Moment,
    ignoresLimits: Bool,
    companions: (KeyIndex) -> [KeyIndex]
  ) -> [KeyIndex: Moment] {
    var found: [KeyIndex: Moment] = [:]
    for lane in lanes where lane.count > 0 {
      var bucket = ignoresLimits ? nil : lane.bucket
      var at = now
      func send(_ key: KeyIndex) {
        if let next = bucket?.nextToken(after: at) { at = next }
        _ = bucket?.take(at: at)
        found[key] = at
        for other in companions(key) where found[other] == nil { found[other] = at }
      }
      for node in keyLinks.nodes(of: lane.urgent) where found[KeyIndex(node)] == nil {
        send(KeyIndex(node))
      }
      // One key of each device in turn; each list is read from its end.
      var turn = turnLinks.nodes(of: lane.turn).map { device in
        Array(keyLinks.nodes(of: owners[Int(device)].keys).reversed())
      }
      while !turn.isEmpty {
        for place in turn.indices {
          while let node = turn[place].popLast() {
            guard found[KeyIndex(node)] == nil else { continue }
            send(KeyIndex(node))
            break
          }
        }
        turn.removeAll { $0.isEmpty }
      }
    }
    return found
  }
}
