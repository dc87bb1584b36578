// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import GatewayCore
import HTTP
import JSON
import LastOut
import Operations

/// The clients of `GET /v1/events`: they share one buffer of events, and the gateway waits for
/// none.
final class EventStreams {
  let context: GatewayContext
  let documents: DeviceDocuments
  private let time: GatewayTime
  /// The newest events, for every stream.
  private(set) var buffer: EventRing
  private(set) var streams: [ObjectIdentifier: EventStream] = [:]
  /// How many streams show where keys stand.
  private(set) var stateStreamCount = 0
  /// Whether a stream was ever opened; its client may return for what it missed.
  private(set) var hasStreamed = false
  /// Whether streams have not been woken for the newest events.
  var hasUnsentEvents = false
  /// Streams that were closed because their client does not read, by reason.
  private(set) var dropped: [String: UInt64] = [:]
  /// Called when the first stream, or one that shows where keys stand, was opened or closed.
  var onObserversChanged: (() -> Void)?
  /// Called after the timer has woken streams.
  var onTime: (() -> Void)?
  private var wokenAt: Moment?
  private var timer: LoopTimer?

  /// The pause between two rounds, so that a flood of events is sent in large pieces.
  private static let pace: Duration = .milliseconds(10)
  /// How long a stream may be silent.
  private static let heartbeat: Duration = .seconds(15)
  /// How soon a client that lost its connection may return, in milliseconds.
  private static let retry = 2000

  init(
    _ context: GatewayContext,
    documents: DeviceDocuments,
    time: GatewayTime
  ) throws(OperationsError) {
    self.context = context
    self.documents = documents
    self.time = time
    // A number that no earlier process of this gateway has used.
    let start = UInt64(max(1, time.start)) * 1000
    buffer = EventRing(capacity: context.configuration.limits.events, startingAt: start)
    timer = try context.loop.makeTimer(named: "event streams") { [weak self] in
      self?.timePassed()
    }
  }

  var count: Int { streams.count }

  /// Opens a stream; the first piece says what the client missed since `lastID`.
  func open(
    _ exchange: HTTPExchange,
    pattern: Pattern?,
    lastID: String?,
    withStates: Bool
  ) -> EventStream {
    let now = EventLoop.now()
    let (cursor, opening) = beginning(lastID, at: now)
    let stream = EventStream(
      exchange: exchange,
      streams: self,
      pattern: pattern,
      cursor: cursor,
      opening: opening,
      withStates: withStates,
      at: now
    )
    let id = ObjectIdentifier(stream)
    streams[id] = stream
    exchange.onEnd = { [weak self] isTooSlow in self?.ended(id, isTooSlow: isTooSlow) }
    let isFirst = !hasStreamed
    hasStreamed = true
    if withStates { stateStreamCount += 1 }
    if withStates || isFirst { onObserversChanged?() }
    if streams.count == 1 { timer?.arm(at: now.advanced(by: Self.heartbeat)) }
    return stream
  }

  /// Adds an event for every stream.
  func append(_ event: EventObject) {
    // Before the first stream no client can ask for it.
    guard hasStreamed else { return }
    buffer.append(event.bytes, key: event.key)
    hasUnsentEvents = !streams.isEmpty
  }

  /// Wakes the streams for what is new; call it after each batch.
  func advance(to now: Moment) { if hasUnsentEvents { wake(at: now) } }

  /// Ends every stream, after its last events.
  func close() {
    for stream in streams.values { stream.end() }
    timer?.cancel()
  }

  // MARK: - Private

  /// Where a client that names its last event continues, and what it receives first.
  private func beginning(
    _ lastID: String?,
    at now: Moment
  ) -> (cursor: UInt64, opening: [UInt8]) {
    let time = EventStreamText.time(time.milliseconds(at: now), since: time.start)
    guard let lastID, !lastID.isEmpty else {
      let opening = EventStreamText.opening(retry: Self.retry, after: buffer.next - 1)
      return (buffer.next, time + opening)
    }
    let opening = time + EventStreamText.opening(retry: Self.retry)
    if let last = UInt64(lastID), last < buffer.next, last >= buffer.first - 1 {
      return (last + 1, opening)
    }
    let gap = EventStreamText.gap(after: lastID, until: buffer.first)
    return (buffer.first, opening + gap)
  }

  private func ended(_ id: ObjectIdentifier, isTooSlow: Bool) {
    guard remove(id), isTooSlow else { return }
    dropped["stalled", default: 0] += 1
  }

  /// Removes a stream; `false` if it was removed before.
  private func remove(_ id: ObjectIdentifier) -> Bool {
    guard let stream = streams.removeValue(forKey: id) else { return false }
    if stream.unsentStates != nil {
      stateStreamCount -= 1
      onObserversChanged?()
    }
    return true
  }

  /// Wakes the streams that can send, and drops those that fell behind.
  private func wake(at now: Moment) {
    if let wokenAt, wokenAt.duration(to: now) < Self.pace {
      timer?.arm(at: wokenAt.advanced(by: Self.pace))
      return
    }
    hasUnsentEvents = false
    wokenAt = now
    for stream in streams.values {
      guard stream.isWaiting || stream.cursor >= buffer.first else {
        drop(stream)
        continue
      }
      stream.wake(at: now)
    }
    armHeartbeat(after: now)
  }

  private func timePassed() {
    let now = EventLoop.now()
    if hasUnsentEvents { wake(at: now) }
    for stream in streams.values where stream.sentAt.advanced(by: Self.heartbeat) <= now {
      stream.beat(at: now)
    }
    armHeartbeat(after: now)
    onTime?()
  }

  private func armHeartbeat(after now: Moment) {
    guard !streams.isEmpty else { return }
    timer?.arm(at: now.advanced(by: hasUnsentEvents ? Self.pace : Self.heartbeat))
  }

  /// Closes a stream whose client does not read.
  private func drop(_ stream: EventStream) {
    dropped["slow", default: 0] += 1
    _ = remove(ObjectIdentifier(stream))
    context.log.warning(
      "Event stream dropped: the client does not read",
      ["peer": stream.exchange.peer, "total": String(dropped["slow"] ?? 0)]
    )
    stream.exchange.drop()
  }
}

/// Where keys stand, for the streams that show it: a device that is changed by hand, or comes
/// online, has no event.
extension EventStreams {
  /// The target, the actual value or the phase of a key changed.
  func changed(_ key: KeyIndex) {
    guard stateStreamCount > 0 else { return }
    let name = context.registry[key].key
    for stream in streams.values where stream.showsState(of: name) {
      stream.unsentStates?.insert(key)
    }
    hasUnsentEvents = true
  }

  /// A device came online or went offline.
  func availabilityChanged(ofDevice device: Int) {
    guard stateStreamCount > 0 else { return }
    for raw in context.registry.indices(ofDevice: device) { changed(KeyIndex(raw)) }
  }

  /// The connection to the broker was made or ended.
  func brokerConnectionChanged() { include(\.includesBroker) }

  /// A reload changed the devices.
  func devicesChanged() { include(\.includesDevices) }

  /// The panel's document was replaced.
  func panelDocumentChanged() { include(\.includesPanel) }

  private func include(_ part: WritableKeyPath<UnsentStates, Bool>) {
    guard stateStreamCount > 0 else { return }
    for stream in streams.values { stream.unsentStates?[keyPath: part] = true }
    hasUnsentEvents = true
  }

  /// Appends what a stream has not sent, at most `room` bytes beyond its first piece.
  func append(_ states: inout UnsentStates, room: Int, to output: inout [UInt8]) {
    if states.includesDevices {
      states.includesDevices = false
      output += EventStreamText.named("devices", JSONWriter.bytes(.object([])))
    }
    if states.includesPanel {
      states.includesPanel = false
      output += EventStreamText.named("panel", JSONWriter.bytes(.object([])))
    }
    if states.includesBroker {
      states.includesBroker = false
      let json = JSONValue.object(["connected": .boolean(context.core.isConnected)])
      output += EventStreamText.named("broker", JSONWriter.bytes(json))
    }
    let now = EventLoop.now()
    while output.count < room, let key = states.popFirst() {
      // A reload has removed the key meanwhile.
      guard !context.registry[key].isRetired else { continue }
      let row = JSONValue.object(documents.stateMembers(key, at: now))
      output += EventStreamText.named("state", JSONWriter.bytes(row))
    }
  }
}
