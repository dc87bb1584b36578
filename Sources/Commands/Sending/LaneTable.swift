// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The lanes: each limits how fast commands are sent to one mesh or bus, and how many are in flight
/// there, and keeps their order.
///
/// In a lane urgent keys go first, without waiting for room, then device by device, in the order of
/// ``LaneFlows``. A key is in its lane at most once and leaves it at once when it has nothing to
/// send any more, so a token is never kept for something that is gone. All operations take constant
/// time.
struct LaneTable {
  struct Lane {
    var bucket: TokenBucket?
    var window: LaneWindow?
    var urgent = LinkTable.List()
    /// Devices with something to send that is not urgent.
    var flows: LaneFlows
    var count = 0
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

  var lanes = [Lane(flows: LaneFlows(devices: 0))]
  private var owners = LazyArray(repeating: Owner(), count: 0)
  private var places = LazyArray<Place>(repeating: .nowhere, count: 0)
  /// Keys are nodes here.
  private var keyLinks = LinkTable(nodes: 0)
  /// Where the search for the next command goes on, so that no lane starves another.
  private var cursor = 0
  /// How many keys wait, in all lanes.
  private(set) var count = 0
  private var flights = LaneFlights(keys: 0, devices: 0)
  private var flowNumbers = FlowNumbers()
  /// The lanes that have or had a limit, by name.
  private var numbers: [String: Int] = [:]
  /// The lane of each device, where an owner's keys move when it is touched.
  private var laneOfDevice: [Int32] = []

  /// The lanes of all devices, empty; the first is for everything that has no limit.
  init(registry: Registry, limits: [String: LaneLimits]) {
    var assignment = assignment(limits: limits)
    for number in registry.devices.indices { assignment.add(registry.lane(ofDevice: number)) }
    extend(keys: registry.properties.count, devices: registry.devices.count)
    replace(assignment, at: .zero)
  }

  /// The number of the flow of a change that `source` asks for.
  @inline(__always)
  mutating func flow(of source: String?, at now: Moment) -> UInt32 {
    if source == nil, let flow = flowNumbers.plain(at: now) { return flow }
    return newFlow(of: source, at: now)
  }

  @inline(never)
  private mutating func newFlow(of source: String?, at now: Moment) -> UInt32 {
    flowNumbers.number(of: source, at: now) { flow in lanes.allSatisfy { $0.flows.isEmpty(flow) } }
  }

  /// Lets a key wait in its device's lane, with a command of `flow`; among the keys of its device
  /// one that waits already keeps its place, unless it has become urgent or ceased to be.
  mutating func add(_ key: KeyIndex, device: Int, isUrgent: Bool, flow: UInt32) {
    moveDevice(device)
    let lane = owners[device].lane
    let wanted: Place = isUrgent ? .urgent(lane: Int32(lane)) : .inTurn
    if places[key] != wanted {
      remove(key, device: device)
      places[key] = wanted
      count += 1
      lanes[lane].count += 1
      if isUrgent {
        keyLinks.append(key.rawValue, to: &lanes[lane].urgent)
      } else {
        keyLinks.append(key.rawValue, to: &owners[device].keys)
      }
    }
    if !isUrgent { lanes[lane].flows.add(device, to: flow) }
  }

  /// Whether a key waits in a lane.
  func contains(_ key: KeyIndex) -> Bool { places[key] != .nowhere }

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
      if owners[device].keys.isEmpty { lanes[lane].flows.remove(device) }
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
      guard lanes[lane].count > 0, ignoresLimits || hasToken(lane, at: now) && mayRun(lane) else {
        continue
      }
      cursor = (lane + 1) % lanes.count
      return next(in: lane)
    }
    return nil
  }

  /// The key whose turn it is in a lane in which one waits.
  private func next(in lane: Int) -> KeyIndex {
    KeyIndex(lanes[lane].urgent.first ?? owners[lanes[lane].flows.next].keys.head)
  }

  /// Whether a command of the lane may leave as far as the number of those in flight goes.
  private func mayRun(_ lane: Int) -> Bool {
    !lanes[lane].urgent.isEmpty || lanes[lane].window?.hasRoom ?? true
  }

  private func hasToken(_ lane: Int, at now: Moment) -> Bool {
    lanes[lane].bucket.map { $0.nextToken(after: now) <= now } ?? true
  }

  /// The command of `key` that belongs to `flow` is about to be sent; what is urgent takes no turn.
  mutating func takeTurn(_ key: KeyIndex, device: Int, flow: UInt32) {
    if places[key] == .inTurn { lanes[owners[device].lane].flows.hadTurn(device, with: flow) }
  }

  /// A message for `device` was sent: it takes a token and room.
  ///
  /// `key` is the one that it was sent for, or that of the group whose `members` it carries;
  /// `isMeasured` states whether the time until it is confirmed says something about the mesh.
  mutating func sent(
    _ key: KeyIndex,
    carrying members: [KeyIndex] = [],
    device: Int,
    isMeasured: Bool,
    at now: Moment
  ) {
    let lane = owners[device].lane
    _ = lanes[lane].bucket?.take(at: now)
    if members.isEmpty, lanes[lane].window != nil {
      begin(key, device, in: lane, isMeasured, at: now)
    } else if lanes[lane].window != nil {
      begin(key, carrying: members, in: lane, at: now)
    }
  }

  /// When a lane that holds something back gets its next token; `nil` when none does.
  func nextToken(after now: Moment) -> Moment? {
    guard count > 0 else { return nil }
    var earliest: Moment?
    for number in lanes.indices where lanes[number].count > 0 && mayRun(number) {
      guard let token = lanes[number].bucket?.nextToken(after: now), token > now else { continue }
      earliest = min(earliest ?? token, token)
    }
    return earliest
  }

  // MARK: - Commands in flight

  private mutating func begin(
    _ key: KeyIndex,
    _ device: Int,
    in lane: Int,
    _ isMeasured: Bool,
    at now: Moment
  ) {
    ended(key)  // A command that this one replaces.
    lanes[lane].window?.begin()
    // One that did not confirm its last command is not waited for again.
    let isSilent = flights.habit(of: device) == .silent
    let window = lanes[lane].window
    let patience = (isSilent ? window?.presumedTime : window?.patience) ?? .zero
    flights.begin(
      .init(lane: lane, device: device, sentAt: now, isMeasured: isMeasured),
      for: key,
      until: now.advanced(by: patience)
    )
  }

  /// Begins a message to a group: how soon its members confirm it, or how many of them, says
  /// nothing about the commands of single devices that the window counts.
  private mutating func begin(
    _ group: KeyIndex,
    carrying members: [KeyIndex],
    in lane: Int,
    at now: Moment
  ) {
    for member in members { ended(member) }
    if let older = flights.endMessage(of: group) { free(older) }
    lanes[lane].window?.begin()
    flights.begin(
      .init(lane: lane, device: nil, sentAt: now, isMeasured: false),
      for: group,
      carrying: members,
      until: now.advanced(by: lanes[lane].window?.patience ?? .zero)
    )
  }

  /// The next command of `key`, an action, does not replace the one before: that keeps its room
  /// until it is presumed to have ended.
  mutating func keepRoom(of key: KeyIndex) { flights.detach(key) }

  /// The broker has a command that nothing can confirm.
  mutating func cannotConfirm(_ key: KeyIndex, at now: Moment) {
    guard let name = flights.lastName(of: key), let flight = flights[name],
      let window = lanes[flight.lane].window
    else { return }
    flights.presume(name, endsAt: now.advanced(by: window.presumedTime))
  }

  /// A command ended, and its end says nothing about the mesh.
  mutating func ended(_ key: KeyIndex) {
    if let flight = flights.end(key) { free(flight) }
  }

  /// A device confirmed a command.
  mutating func confirmed(_ key: KeyIndex, at now: Moment) {
    guard let flight = flights.end(key) else { return }
    free(flight)
    if let device = flight.device { _ = flights.record(isSilent: false, of: device) }
    guard flight.isMeasured else { return }
    let time = flight.sentAt.duration(to: now)
    let isFull = lanes[flight.lane].count > 0
    lanes[flight.lane].window?.confirm(after: time, isFull: isFull, at: now)
  }

  /// A device did not confirm a command in time; one that did not before either says nothing new.
  mutating func lost(_ key: KeyIndex, at now: Moment) {
    guard let flight = flights.end(key) else { return }
    free(flight)
    guard let device = flight.device else { return }
    let habit = flights.record(isSilent: true, of: device)
    guard habit != .silent else { return }
    lanes[flight.lane].window?.lose(sent: flight.sentAt, isProof: habit == .confirms, at: now)
  }

  /// The mesh of a lane, by name, has no room for commands.
  mutating func refused(by name: String, at now: Moment) {
    if let lane = numbers[name] { lanes[lane].window?.refuse(at: now) }
  }

  private mutating func free(_ flight: LaneFlights.Flight) {
    if flight.hasRoom { lanes[flight.lane].window?.end() }
  }

  /// When the first command in flight is presumed to have ended.
  @inline(__always)
  var nextPresumption: Moment? { flights.nextPresumption }

  /// Frees the room of a command that is presumed to have ended; `false` when there is none.
  mutating func endPresumed(at now: Moment) -> Bool {
    guard let lane = flights.popPresumed(at: now) else { return false }
    lanes[lane].window?.end()
    return true
  }

  /// The number of a device's lane.
  func lane(ofDevice device: Int) -> Int { Int(laneOfDevice[device]) }

  /// The name of a device's lane; `nil` for the one without a limit.
  func name(ofDevice device: Int) -> String? {
    numbers.first { $0.value == owners[device].lane }?.key
  }

  /// The lanes that have a limit, by name.
  var statuses: [LaneStatus] {
    numbers.keys.sorted().compactMap { name in
      guard let lane = numbers[name].map({ lanes[$0] }) else { return nil }
      guard lane.bucket != nil || lane.window != nil else { return nil }
      return LaneStatus(
        name: name,
        waiting: lane.count,
        inFlight: lane.window?.inFlight,
        window: lane.window?.capacity,
        roundTrip: lane.window?.roundTrip,
        lost: lane.window?.lostCount
      )
    }
  }

  // MARK: - Reload

  /// Makes room for more keys and devices.
  mutating func extend(keys: Int, devices: Int) {
    flights.extend(keys: keys, devices: devices)
    places.extend(to: keys)
    keyLinks.extend(toNodes: keys)
    for lane in lanes.indices { lanes[lane].flows.extend(devices: devices) }
    owners.extend(to: devices)
  }

  /// Begins to assign devices to lanes under other limits: each of these lanes gets a number.
  mutating func assignment(limits: [String: LaneLimits]) -> LaneAssignment {
    for name in limits.keys.sorted() where numbers[name] == nil {
      numbers[name] = lanes.count
      lanes.append(Lane(flows: LaneFlows(devices: owners.count)))
    }
    return LaneAssignment(limits: limits, numbers: numbers)
  }

  /// Continues with other lanes, which has no effect on a device until it is touched.
  ///
  /// Lanes keep their tokens and what waits in them. Takes time in proportion to the lanes.
  mutating func replace(_ assignment: LaneAssignment, at now: Moment) {
    laneOfDevice = assignment.laneOfDevice
    setLimits(assignment.limits, at: now)
  }

  /// Gives lanes other limits; one that is not named has none any more.
  mutating func setLimits(_ limits: [String: LaneLimits], at now: Moment) {
    for (name, number) in numbers {
      lanes[number].bucket = limits[name]?.rate.map { rate in
        lanes[number].bucket?.limited(to: rate, at: now) ?? TokenBucket(rate)
      }
      lanes[number].window = limits[name]?.window.map { limits in
        lanes[number].window?.limited(to: limits) ?? LaneWindow(limits)
      }
    }
  }

  /// Moves what waits of a device to its lane, where it joins its flow; an urgent key stays until
  /// it is added again.
  mutating func moveDevice(_ device: Int) {
    let (old, new) = (owners[device].lane, lane(ofDevice: device))
    guard old != new else { return }
    owners[device].lane = new
    guard let flow = lanes[old].flows.remove(device) else { return }
    let keyCount = keyLinks.nodes(of: owners[device].keys).count
    lanes[old].count -= keyCount
    lanes[new].flows.add(device, to: flow)
    lanes[new].count += keyCount
  }

  // MARK: - Forecast

  /// When each waiting key gets its token, if nothing is added or removed; nothing is said of keys
  /// that wait for room in the window.
  ///
  /// `flow` names the flow of a key's command, `device` its device, and `companions` the keys that
  /// are sent in its message. Takes time in proportion to the keys that wait, and a copy of the
  /// table.
  func sendTimes(
    after now: Moment,
    ignoresLimits: Bool,
    flow: (KeyIndex) -> UInt32,
    device: (KeyIndex) -> Int,
    companions: (KeyIndex) -> [KeyIndex]
  ) -> [KeyIndex: Moment] {
    var found: [KeyIndex: Moment] = [:]
    var table = self
    for lane in lanes.indices {
      var bucket = ignoresLimits ? nil : lanes[lane].bucket
      var room = ignoresLimits ? nil : lanes[lane].window.map { max(0, $0.capacity - $0.inFlight) }
      var at = now
      while table.lanes[lane].count > 0, room != 0 || !table.lanes[lane].urgent.isEmpty {
        let key = table.next(in: lane)
        if let next = bucket?.nextToken(after: at) { at = next }
        _ = bucket?.take(at: at)
        table.takeTurn(key, device: device(key), flow: flow(key))
        for key in [key] + companions(key) where found[key] == nil {
          found[key] = at
          table.remove(key, device: device(key))
        }
        room = room.map { max(0, $0 - 1) }
      }
    }
    return found
  }
}

/// What requests for states cost in a lane: a token, and room in the window until they are
/// answered.
extension LaneTable {
  /// Whether a request may be sent: no command waits, and one that comes finds room.
  func mayRequest(in lane: Int, at now: Moment) -> Bool {
    nextRequestToken(in: lane, after: now) == now
  }

  /// When a request may be sent, as far as the rate goes; `nil` while commands have the lane or its
  /// window.
  func nextRequestToken(in lane: Int, after now: Moment) -> Moment? {
    guard lanes[lane].count == 0 else { return nil }
    if let window = lanes[lane].window, window.inFlight >= max(1, window.capacity - 1) {
      return nil
    }
    return lanes[lane].bucket?.nextToken(after: now) ?? now
  }

  /// A request was sent.
  ///
  /// - Returns: How long it takes up room in the window without an answer; `nil` without a window.
  mutating func request(in lane: Int, at now: Moment) -> Duration? {
    _ = lanes[lane].bucket?.take(at: now)
    lanes[lane].window?.begin()
    return lanes[lane].window?.patience
  }

  /// A request no longer takes up room.
  mutating func endRequest(in lane: Int) { lanes[lane].window?.end() }
}

/// What a lane does at the moment.
package struct LaneStatus: Hashable, Sendable {
  package let name: String
  /// How many commands wait in the lane.
  package var waiting: Int
  /// How many commands take up room in the window; `nil`, like all that follows, without a window.
  package let inFlight: Int?
  /// How many commands may be in flight.
  package let window: Int?
  /// How long devices take to confirm a command, on average; `nil` until one has.
  package let roundTrip: Duration?
  /// How many commands were not confirmed in time, those of devices that were silent before left
  /// out.
  package let lost: Int?
}

/// A rate with a burst: one token a command.
///
/// Kept as the moment at which the bucket will be full again, in whole nanoseconds: nothing to
/// refill, and no rounding that adds up.
struct TokenBucket {
  private let interval: UInt64
  /// How far ``fullAt`` may lie ahead while a token is left.
  private let reach: UInt64
  private var fullAt: UInt64 = 0

  init(_ rate: LaneLimits.Rate) {
    interval = UInt64(min((1e9 / rate.perSecond).rounded(.up), 1e18))
    let (product, overflow) =
      interval.multipliedReportingOverflow(by: UInt64(max(rate.burst, 1) - 1))
    reach = overflow ? UInt64(Int64.max) : min(product, UInt64(Int64.max))
  }

  /// The same bucket with another limit: as many tokens are missing, as far as it has held them.
  func limited(to rate: LaneLimits.Rate, at now: Moment) -> Self {
    var bucket = Self(rate)
    if bucket.interval == interval, bucket.reach == reach { return self }
    guard fullAt > now.nanoseconds else { return bucket }
    let missing = (fullAt - now.nanoseconds + interval - 1) / interval
    let (wait, overflow) = min(missing, UInt64(max(rate.burst, 1)))
      .multipliedReportingOverflow(by: bucket.interval)
    bucket.fullAt = now.nanoseconds + (overflow ? UInt64(Int64.max) / 2 : wait)
    return bucket
  }

  /// Takes a token if there is one.
  mutating func take(at now: Moment) -> Bool {
    guard nextToken(after: now) <= now else { return false }
    fullAt = max(fullAt, now.nanoseconds) + interval
    return true
  }

  /// When the next token is there, never early; `now` if it is there already.
  func nextToken(after now: Moment) -> Moment {
    let ready = fullAt > reach ? fullAt - reach : 0
    return Moment(nanoseconds: max(ready, now.nanoseconds))
  }
}
