// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The devices of a lane with something to send, in their order.
///
/// Each waits in a flow, which is what one source asked for at one time; see ``FlowNumbers``. A new
/// flow goes first, once; then flows take turns, and so do the devices of a flow. While new flows go
/// first, old ones that wait get every second place. (New and old flows are those of FQ-CoDel, RFC
/// 8290.)
///
/// A device has one place, whatever waits of it, so the order of its own commands is not that of
/// flows. With a newer change it moves to the flow of that if fewer devices are ahead of it there:
/// each move brings it nearer, so that none waits for ever. All operations take constant time.
struct LaneFlows {
  private struct Flow {
    var devices = LinkTable.List()
    /// Whether it has had a turn.
    var isOld = false
    /// The number of the seat behind its last device.
    var nextSeat: UInt32 = 0
  }

  /// Where a device waits.
  private struct Seat {
    /// `nil` for nowhere.
    var flow: UInt32?
    /// Counts up within the flow.
    var number: UInt32 = 0
  }

  /// How many flows are told apart, a power of two; numbers beyond share a flow.
  static let count: UInt32 = 1024

  private var flows = LazyArray(repeating: Flow(), count: Int(count))
  private var flowLinks = LinkTable(nodes: Int(count))
  private var new = LinkTable.List()
  private var old = LinkTable.List()
  private var seats = LazyArray(repeating: Seat(), count: 0)
  private var deviceLinks = LinkTable(nodes: 0)
  /// Whether old flows waited when a new one went first.
  private var owesTurn = false

  init(devices: Int) { extend(devices: devices) }

  mutating func extend(devices: Int) {
    seats.extend(to: devices)
    deviceLinks.extend(toNodes: devices)
  }

  /// Whether nothing waits in the flow.
  func isEmpty(_ flow: UInt32) -> Bool { flows[Self.place(flow)].devices.isEmpty }

  /// The device whose turn it is; one must wait.
  var next: Int {
    let isOld = new.isEmpty || owesTurn && !old.isEmpty
    return Int(flows[Int((isOld ? old : new).head)].devices.head)
  }

  /// A command that belongs to `flow` waits of a device.
  mutating func add(_ device: Int, to flow: UInt32) {
    if let present = seats[device].flow {
      guard Self.isNewer(flow, than: present), ahead(joining: flow) < ahead(of: device) else {
        return
      }
      remove(device)
    }
    let place = Self.place(flow)
    if flows[place].devices.isEmpty {
      flows[place] = Flow()
      flowLinks.append(Int32(place), to: &new)
    }
    seat(device, in: flow)
  }

  /// Nothing waits of a device any more, which must be in a flow.
  ///
  /// - Returns: The flow that it waited in.
  @discardableResult
  mutating func remove(_ device: Int) -> UInt32? {
    guard let flow = seats[device].flow else { return nil }
    let place = Self.place(flow)
    deviceLinks.remove(Int32(device), from: &flows[place].devices)
    seats[device].flow = nil
    guard flows[place].devices.isEmpty else { return flow }
    if flows[place].isOld {
      flowLinks.remove(Int32(place), from: &old)
    } else {
      flowLinks.remove(Int32(place), from: &new)
    }
    return flow
  }

  /// The device had its turn with a command that belongs to `flow`.
  mutating func hadTurn(_ device: Int, with flow: UInt32) {
    guard let present = seats[device].flow else { return }
    // It brought the command along: that was a turn of the older flow.
    if Self.isNewer(present, than: flow) {
      owesTurn = false
      return
    }
    let place = Self.place(present)
    if flows[place].isOld {
      owesTurn = false
      flowLinks.remove(Int32(place), from: &old)
    } else {
      owesTurn = !old.isEmpty
      flowLinks.remove(Int32(place), from: &new)
    }
    flows[place].isOld = true
    flowLinks.append(Int32(place), to: &old)
    deviceLinks.remove(Int32(device), from: &flows[place].devices)
    seat(device, in: present)
  }

  private mutating func seat(_ device: Int, in flow: UInt32) {
    let place = Self.place(flow)
    seats[device] = Seat(flow: flow, number: flows[place].nextSeat)
    flows[place].nextSeat &+= 1
    deviceLinks.append(Int32(device), to: &flows[place].devices)
  }

  /// How many devices are ahead of one that waits, at most, and whether its flow is old.
  private func ahead(of device: Int) -> UInt32 {
    seats[device].flow.map { ahead(seats[device].number, in: $0) } ?? 0
  }

  private func ahead(joining flow: UInt32) -> UInt32 {
    isEmpty(flow) ? 0 : ahead(flows[Self.place(flow)].nextSeat, in: flow)
  }

  private func ahead(_ seat: UInt32, in flow: UInt32) -> UInt32 {
    let flow = flows[Self.place(flow)]
    return seat &- seats[Int(flow.devices.head)].number &+ (flow.isOld ? 1 : 0)
  }

  private static func place(_ flow: UInt32) -> Int { Int(flow % count) }

  /// Whether a flow began after another one; numbers begin again after four billions.
  private static func isNewer(_ flow: UInt32, than other: UInt32) -> Bool {
    Int32(bitPattern: flow &- other) > 0
  }
}

/// Numbers the flows of changes.
///
/// What a source asks for within 50 ms of the first change of a flow is of that flow, and so is what
/// one request asks for at one instant. A source is known by its name; plain MQTT messages have
/// none, so all of these are of one.
struct FlowNumbers {
  /// How long a flow lasts, in nanoseconds.
  private static let span: UInt64 = 50_000_000
  /// How many sources are remembered, the latest ones.
  private static let limit = 8

  private var latest: [(source: String?, flow: UInt32, since: Moment)] = []
  /// The flow of messages without a source, at hand.
  private var plain: (flow: UInt32, since: Moment) = (0, .zero)
  /// Which of ``latest`` is replaced next.
  private var oldest = 0
  private var newest: UInt32 = 0

  /// The number of the flow of a change without a source; `nil` if it begins another one.
  @inline(__always)
  func plain(at now: Moment) -> UInt32? {
    now.nanoseconds &- plain.since.nanoseconds <= Self.span ? plain.flow : nil
  }

  /// The number of the flow of a change; `isFree` says whether nothing waits in another flow that
  /// would share its place.
  mutating func number(
    of source: String?,
    at now: Moment,
    isFree: (UInt32) -> Bool
  ) -> UInt32 {
    let known = latest.firstIndex { $0.source == source }
    if let known, now.nanoseconds &- latest[known].since.nanoseconds <= Self.span {
      return latest[known].flow
    }
    for _ in 0..<LaneFlows.count {
      newest &+= 1
      if isFree(newest) { break }
    }
    if source == nil { plain = (newest, now) }
    if let known {
      latest[known] = (source, newest, now)
    } else if latest.count < Self.limit {
      latest.append((source, newest, now))
    } else {
      latest[oldest] = (source, newest, now)
      oldest = (oldest + 1) % Self.limit
    }
    return newest
  }
}
