// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import LastOut
import Routing

/// One client of `GET /v1/events`: a position in the shared buffer, and no bytes of its own.
final class EventStream: ResponseStream {
  let exchange: HTTPExchange
  let pattern: Pattern?
  /// The number of the next event to send.
  var cursor: UInt64
  /// The states to send; `nil` for a stream of events alone.
  var unsentStates: UnsentStates?
  /// When something was sent last.
  private(set) var sentAt: Moment
  /// Whether nothing is left to send.
  private(set) var isWaiting = false
  private var opening: [UInt8]
  private var wantsHeartbeat = false
  private var isEnding = false
  private unowned let streams: EventStreams
  /// ``EventStreams`` drops clients that do not read.
  var isEndless: Bool { true }

  init(
    exchange: HTTPExchange,
    streams: EventStreams,
    pattern: Pattern?,
    cursor: UInt64,
    opening: [UInt8],
    withStates: Bool,
    at now: Moment
  ) {
    self.exchange = exchange
    self.streams = streams
    self.pattern = pattern
    self.cursor = cursor
    self.opening = opening
    sentAt = now
    unsentStates = withStates ? UnsentStates() : nil
  }

  /// Whether it shows where a key stands.
  func showsState(of key: String) -> Bool {
    unsentStates != nil && pattern?.matches(key) ?? true
  }

  func next(_ room: Int) -> ResponsePiece {
    isWaiting = false
    if !opening.isEmpty {
      defer { opening = [] }
      return .bytes(opening)
    }
    if cursor < streams.buffer.first {
      // More events happened at once than the buffer keeps.
      let gap = EventStreamText.gap(after: String(cursor - 1), until: streams.buffer.first)
      cursor = streams.buffer.first
      return .bytes(gap)
    }
    var bytes: [UInt8] = []
    streams.buffer.read(from: &cursor, matching: pattern, room: room, into: &bytes)
    // States follow the events that led to them.
    if bytes.isEmpty { appendStates(room: room, to: &bytes) }
    if bytes.isEmpty, wantsHeartbeat { bytes = EventStreamText.heartbeat }
    wantsHeartbeat = false
    if !bytes.isEmpty { return .bytes(bytes) }
    if isEnding { return .end }
    isWaiting = true
    return .wait
  }

  /// Sends what is new, if the client reads.
  func wake(at now: Moment) {
    guard isWaiting else { return }
    if cursor >= streams.buffer.first {
      streams.buffer.skip(from: &cursor, matching: pattern)
    }
    guard cursor < streams.buffer.next || unsentStates?.isEmpty == false else { return }
    sentAt = now
    resume()
  }

  private func resume() {
    guard isWaiting else { return }
    isWaiting = false
    exchange.wake()
  }

  private func appendStates(room: Int, to bytes: inout [UInt8]) {
    guard var states = unsentStates, !states.isEmpty else { return }
    streams.append(&states, room: room, to: &bytes)
    unsentStates = states
  }

  /// Sends a heartbeat, so that a client that is gone is noticed.
  func beat(at now: Moment) {
    sentAt = now
    wantsHeartbeat = true
    resume()
  }

  /// Sends what is left, and ends.
  func end() {
    isEnding = true
    resume()
  }
}

/// The states that one client of `GET /v1/events?states=true` has not received yet.
///
/// It holds which keys changed and no values: a client that reads late receives each key once, as
/// it stands then.
struct UnsentStates {
  /// The keys in the order of their first change.
  private var keys = Deque<KeyIndex>()
  private var known: Set<KeyIndex> = []
  /// Whether the connection to the broker changed.
  var includesBroker = false
  /// Whether a reload changed the devices.
  var includesDevices = false
  /// Whether the panel's document was replaced.
  var includesPanel = false

  var isEmpty: Bool {
    keys.isEmpty && !includesBroker && !includesDevices && !includesPanel
  }

  mutating func insert(_ key: KeyIndex) {
    guard known.insert(key).inserted else { return }
    keys.append(key)
  }

  /// Removes the key that has waited longest, in constant time on average.
  mutating func popFirst() -> KeyIndex? {
    guard let key = keys.popFirst() else { return nil }
    known.remove(key)
    return key
  }
}
