// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
package import LastOut

/// Which properties the gateway wants to know the state of, and which device is asked next.
///
/// It keeps one number for each key: how many of its requests remain. Devices wait in the queue of
/// their lane, those first whose state a step needs. A device that was asked is not asked again
/// until it has reported, or is presumed not to; unless a step needs it.
struct StateRequests {
  /// The devices that wait for a lane.
  private struct Queue {
    /// A step waits for their state.
    var needed = LinkTable.List()
    var others = LinkTable.List()
  }

  private enum Place: Equatable {
    case nowhere
    case needed(lane: Int32)
    case other(lane: Int32)
  }

  /// How long retained states may take to arrive on a new connection: they need no request.
  static let patience = Duration.milliseconds(500)

  /// How many requests of a key remain: the last ones of its property.
  private var wanted: LazyArray<UInt8>
  private var places: LazyArray<Place>
  /// Devices are nodes here.
  private var links: LinkTable
  /// By lane.
  private var queues: [Queue] = []
  /// When devices that nothing needs are asked at the earliest.
  private(set) var beginsAt = Moment.zero
  /// How many devices wait.
  private(set) var count = 0
  /// The lane where the search goes on, so that none starves another.
  private var cursor = 0
  /// The devices whose request takes up room in a window, and until when; devices are keys here.
  private var flights: KeyDeadlines
  private var lanesOfFlights: LazyArray<Int32>

  init(keys: Int, devices: Int) {
    wanted = LazyArray(repeating: 0, count: keys)
    places = LazyArray(repeating: .nowhere, count: devices)
    links = LinkTable(nodes: devices)
    flights = KeyDeadlines(keys: devices)
    lanesOfFlights = LazyArray(repeating: 0, count: devices)
  }

  mutating func extend(keys: Int, devices: Int) {
    wanted.extend(to: keys)
    links.extend(toNodes: devices)
    flights.extend(keys: devices)
    places.extend(to: devices)
    lanesOfFlights.extend(to: devices)
  }

  /// Whether no device waits or was asked a moment ago.
  @inline(__always)
  var isIdle: Bool { count == 0 && flights.count == 0 }

  /// How many requests of `key` remain.
  func wanted(_ key: KeyIndex) -> Int { Int(wanted[key]) }

  // MARK: - What is wanted

  /// Records that so many requests of `key` remain.
  mutating func want(_ key: KeyIndex, requests: Int) {
    wanted[key] = UInt8(clamping: max(requests, Int(wanted[key])))
  }

  /// Records that one request of `key` was sent.
  mutating func sent(_ key: KeyIndex) { if wanted[key] > 0 { wanted[key] -= 1 } }

  /// The state of `key` is known: it needs no request.
  mutating func know(_ key: KeyIndex) { wanted[key] = 0 }

  /// A connection was made: whatever is retained arrives first.
  mutating func connected(at now: Moment) { beginsAt = now.advanced(by: Self.patience) }

  /// Forgets everything, because the connection ended.
  ///
  /// - Returns: The lanes in whose windows requests took up room, each as often as they did.
  mutating func disconnected() -> [Int] {
    for device in places.indices where places[device] != .nowhere { dequeue(device) }
    for place in wanted.indices where wanted[place] > 0 { wanted[place] = 0 }
    var lanes: [Int] = []
    while let device = flights.popFirst(at: Moment(nanoseconds: .max)) {
      lanes.append(Int(lanesOfFlights[Int(device.rawValue)]))
    }
    return lanes
  }

  // MARK: - Queues

  /// Lets a device wait for its lane; one that waits already keeps its place, unless a step needs
  /// it now or its lane is another.
  mutating func enqueue(_ device: Int, lane: Int, isNeeded: Bool) {
    let lane32 = Int32(lane)
    if places[device] == .needed(lane: lane32) { return }
    let place: Place = isNeeded ? .needed(lane: lane32) : .other(lane: lane32)
    guard places[device] != place else { return }
    dequeue(device)
    while queues.count <= lane { queues.append(Queue()) }
    if isNeeded {
      links.append(Int32(device), to: &queues[lane].needed)
    } else {
      links.append(Int32(device), to: &queues[lane].others)
    }
    places[device] = place
    count += 1
  }

  mutating func dequeue(_ device: Int) {
    switch places[device] {
    case .nowhere: return
    case .needed(let lane): links.remove(Int32(device), from: &queues[Int(lane)].needed)
    case .other(let lane): links.remove(Int32(device), from: &queues[Int(lane)].others)
    }
    places[device] = .nowhere
    count -= 1
  }

  /// A device has another lane now.
  mutating func move(_ device: Int, to lane: Int) {
    switch places[device] {
    case .nowhere: return
    case .needed: enqueue(device, lane: lane, isNeeded: true)
    case .other: enqueue(device, lane: lane, isNeeded: false)
    }
  }

  /// Whether a step needs the state of a device that waits.
  func isNeeded(_ device: Int) -> Bool {
    if case .needed = places[device] { true } else { false }
  }

  /// The device that is asked next, which stays where it is; the lanes get their turn one by one.
  mutating func next(at now: Moment, where mayAsk: (_ lane: Int) -> Bool) -> Int? {
    guard count > 0 else { return nil }
    for step in queues.indices {
      let lane = (cursor + step) % queues.count
      guard let device = first(in: lane, at: now), mayAsk(lane) else { continue }
      cursor = (lane + 1) % queues.count
      return device
    }
    return nil
  }

  private func first(in lane: Int, at now: Moment) -> Int? {
    if let device = queues[lane].needed.first { return Int(device) }
    return beginsAt <= now ? queues[lane].others.first.map { Int($0) } : nil
  }

  /// When a device of each lane may be asked as far as this queue goes; `nil` where none waits.
  func earliest(in lane: Int, after now: Moment) -> Moment? {
    if !queues[lane].needed.isEmpty { return now }
    return queues[lane].others.isEmpty ? nil : max(beginsAt, now)
  }

  var lanes: Range<Int> { queues.indices }

  // MARK: - Requests in flight

  /// The request of a device takes up room in the window of `lane`.
  ///
  /// - Returns: The lane of its request before, if that still did.
  mutating func begin(_ device: Int, lane: Int, until moment: Moment) -> Int? {
    let before = end(device)
    flights.set(KeyIndex(Int32(device)), at: moment)
    lanesOfFlights[device] = Int32(lane)
    return before
  }

  /// The request of a device was answered; returns its lane if it took up room.
  mutating func end(_ device: Int) -> Int? {
    let key = KeyIndex(Int32(device))
    guard flights.count > 0, flights[key] != nil else { return nil }
    flights.remove(key)
    return Int(lanesOfFlights[device])
  }

  /// When the first request is presumed to get no answer.
  var nextPresumption: Moment? { flights.first }

  /// The lane of a request that is presumed to get no answer, once.
  mutating func popPresumed(at now: Moment) -> Int? {
    flights.popFirst(at: now).map { Int(lanesOfFlights[Int($0.rawValue)]) }
  }
}

/// A message that asks a device for its state.
package struct StateRequestMessage: Hashable, Sendable {
  package let device: Int
  package let topic: String
  package private(set) var payload: [UInt8]
  /// The keys whose state it asks for.
  package private(set) var keys: [KeyIndex] = []

  /// Composes the next message for a device; `nil` when nothing of it is wanted.
  ///
  /// It asks for the first property that is wanted, and for all others whose requests fit into the
  /// same message: equal ones, and JSON objects for the same topic.
  init?(ofDevice device: Int, _ requests: borrowing StateRequests, in registry: Registry) {
    var lead: StateRequest?
    var members: [JSONValue.Member]?
    var keys: [KeyIndex] = []
    for raw in registry.indices(ofDevice: device) {
      let key = KeyIndex(raw)
      let left = requests.wanted(key)
      guard left > 0, let next = registry[key].property.request(left: left) else { continue }
      guard let lead else {
        lead = next
        members = next.members
        keys.append(key)
        continue
      }
      guard next.topic == lead.topic else { continue }
      if let known = members, let more = next.members {
        guard let union = Self.union(known, more) else { continue }
        members = union
      } else if next != lead {
        continue
      }
      keys.append(key)
    }
    guard let lead else { return nil }
    self.device = device
    self.keys = keys
    topic = lead.topic
    payload = members.map { JSONWriter.bytes(.object($0)) } ?? lead.payload
  }

  /// The members of both; `nil` where they contradict each other.
  private static func union(
    _ left: [JSONValue.Member],
    _ right: [JSONValue.Member]
  ) -> [JSONValue.Member]? {
    var all = left
    for member in right {
      guard let known = left.first(where: { $0.name == member.name }) else {
        all.append(member)
        continue
      }
      guard known.value == member.value else { return nil }
    }
    return all
  }
}

extension Property {
  /// The request to send next when the last `left` ones remain.
  fileprivate func request(left: Int) -> StateRequest? {
    let requests = states.compactMap(\.get)
    return left <= requests.count ? requests[requests.count - left] : requests.last
  }
}

/// Requests for the states of devices: they have a lane when no command waits for it.
extension SendQueue {
  /// Asks for the state of a key; `isNeeded` states that a step waits for it.
  mutating func wantState(of key: KeyIndex, isNeeded: Bool = false) {
    guard isConnected, facts[key].canAsk else { return }
    requests.want(key, requests: Int(facts[key].requestCount))
    let device = facts[key].device
    guard isNeeded || canAnswer(device) else { return }
    requests.enqueue(device, lane: lanes.lane(ofDevice: device), isNeeded: isNeeded)
  }

  /// Whether a device is there to answer; one that is away or asleep is asked when it is back.
  private func canAnswer(_ device: Int) -> Bool {
    isDeviceOnline(device) && !registry.sleeps(device)
  }

  /// Asks for every state, because the connection is new; for none, because it ended.
  mutating func renewRequests(at now: Moment) {
    guard isConnected else {
      for lane in requests.disconnected() { lanes.endRequest(in: lane) }
      return
    }
    requests.connected(at: now)
    for key in facts.keys where facts[key].canAsk { wantState(of: key) }
  }

  /// Asks a device that came back for what it was not asked for; one that went away is not asked.
  ///
  /// `isAwake` states that a sleeping device has reported itself.
  mutating func wantStates(ofDevice device: Int, isAwake: Bool = false) {
    if isAwake || canAnswer(device) {
      guard isConnected, isDeviceOnline(device), hasWanted(device) else { return }
      requests.enqueue(device, lane: lanes.lane(ofDevice: device), isNeeded: isAwake)
    } else if !requests.isNeeded(device) {
      requests.dequeue(device)
    }
  }

  /// A device reported the state of a key.
  mutating func stateKnown(of key: KeyIndex) {
    guard facts[key].canAsk, !requests.isIdle || requests.wanted(key) > 0 else { return }
    requests.know(key)
    if !hasWanted(facts[key].device) { requests.dequeue(facts[key].device) }
    if let lane = requests.end(facts[key].device) { lanes.endRequest(in: lane) }
  }

  /// The next request that may be sent now; `nil` when there is none.
  mutating func nextRequest(at now: Moment) -> StateRequestMessage? {
    guard isConnected else { return nil }
    while let device = requests.next(at: now, where: { lanes.mayRequest(in: $0, at: now) }) {
      let isNeeded = requests.isNeeded(device)
      requests.dequeue(device)
      guard isNeeded || canAnswer(device),
        let message = StateRequestMessage(ofDevice: device, requests, in: registry)
      else { continue }
      for key in message.keys { requests.sent(key) }
      let lane = lanes.lane(ofDevice: device)
      if let patience = lanes.request(in: lane, at: now) {
        let end = now.advanced(by: patience)
        if let before = requests.begin(device, lane: lane, until: end) {
          lanes.endRequest(in: before)
        }
      }
      if hasWanted(device) { requests.enqueue(device, lane: lane, isNeeded: isNeeded) }
      return message
    }
    return nil
  }

  private func hasWanted(_ device: Int) -> Bool {
    registry.indices(ofDevice: device).contains { requests.wanted(KeyIndex($0)) > 0 }
  }

  /// When a request can be sent, or stops taking up room; `nil` when none waits for time.
  func nextRequestDeadline(after now: Moment) -> Moment? {
    guard isConnected, !requests.isIdle else { return nil }
    var earliest = requests.nextPresumption
    for lane in requests.lanes {
      guard let begin = requests.earliest(in: lane, after: now),
        let token = lanes.nextRequestToken(in: lane, after: now)
      else { continue }
      let moment = max(begin, token)
      if moment > now { earliest = Moment.earlier(earliest, moment) }
    }
    return earliest
  }

  /// Frees the room of requests that are presumed to get no answer.
  @inline(__always)
  mutating func endPresumedRequests(at now: Moment) {
    guard !requests.isIdle else { return }
    while let lane = requests.popPresumed(at: now) { lanes.endRequest(in: lane) }
  }
}
