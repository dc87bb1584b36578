// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import HTTP
import LastOut
import Operations

/// Server-sent events: one buffer for all clients, none of whom is waited for.
extension HTTPSurface {
  /// The pause between two rounds of telling, so that a flood of events is sent in large pieces.
  private static let pace: Duration = .milliseconds(10)
  /// How long a stream may be silent.
  private static let heartbeat: Duration = .seconds(15)
  /// How soon a client that lost its connection may come again, in milliseconds.
  private static let retry = 2000

  /// Of all connections so many may be streams, so that changes still get in; and so many streams or
  /// waiting changes, so that those who are quick still do.
  private var limits: (streams: Int, lasting: Int) {
    let clients = gateway.configuration.limits.httpClients
    return (max(1, clients - max(1, clients / 4)), max(1, clients - max(1, clients / 8)))
  }

  /// Refuses one more stream, or one more request that would wait.
  func checkRoomToLast(asStream isStream: Bool) throws(Problem) {
    let (streamLimit, lastingLimit) = limits
    let message: String
    if isStream, streams.count >= streamLimit {
      message = "\(streamLimit) event streams are open, which is the limit"
    } else if streams.count + waiting >= lastingLimit {
      message = "\(lastingLimit) streams and waiting requests are open, which is the limit"
    } else {
      return
    }
    throw Problem(
      503,
      ErrorCode.limit.rawValue,
      message,
      headers: [HTTPHeader("Retry-After", "5")]
    )
  }

  func serveEvents(_ exchange: HTTPExchange) throws(Problem) {
    let pattern = try eventPattern(exchange.request)
    let wantsStates = try ChangeBody.flag("states", of: exchange.request)
    if exchange.request.method == "HEAD" {
      return answer(exchange, HTTPResponse(type: EventStreamText.mediaType, []))
    }
    try checkRoomToLast(asStream: true)
    let (cursor, opening) = beginning(exchange.request.value(of: "Last-Event-ID"))
    let now = EventLoop.now()
    let stream = EventStream(
      exchange: exchange,
      surface: self,
      pattern: pattern,
      cursor: cursor,
      opening: opening,
      wantsStates: wantsStates,
      at: now
    )
    let id = ObjectIdentifier(stream)
    streams[id] = stream
    if wantsStates {
      stateStreams += 1
      gateway.updateWatching()
    }
    exchange.onEnd = { [weak self] isTooSlow in self?.streamEnded(id, isTooSlow: isTooSlow) }
    if !hasStreamed {
      hasStreamed = true
      gateway.updateWatching()
    }
    if streams.count == 1 { streamTimer?.arm(at: now.advanced(by: Self.heartbeat)) }
    answer(
      exchange,
      HTTPResponse(
        status: 200,
        headers: [
          HTTPHeader("Content-Type", EventStreamText.mediaType),
          HTTPHeader("X-Accel-Buffering", "no"),
        ],
        body: .stream(stream)
      )
    )
  }

  private func eventPattern(_ request: HTTPRequest) throws(Problem) -> Pattern? {
    guard let text = try ChangeBody.pattern(of: request, beside: ["states"]) else { return nil }
    if let mistake = KeySyntax.deviceProperty.mistake(inPattern: text) {
      throw Problem(422, ErrorCode.badKey.rawValue, mistake)
    }
    do throws(ValidationError) {
      return try gateway.watched(text)
    } catch {
      throw HTTPProblems.problem(error, key: text)
    }
  }

  /// Where a client goes on that names the last event it got; the opening says what it missed.
  private func beginning(_ lastID: String?) -> (cursor: UInt64, opening: [UInt8]) {
    let opening = EventStreamText.opening(retry: Self.retry)
    guard let lastID, !lastID.isEmpty else { return (buffer.next, opening) }
    if let last = UInt64(lastID), last < buffer.next, last >= buffer.first - 1 {
      return (last + 1, opening)
    }
    let gap = EventStreamText.gap(after: lastID, until: buffer.first)
    return (buffer.first, opening + gap)
  }

  private func streamEnded(_ id: ObjectIdentifier, isTooSlow: Bool) {
    guard forget(id), isTooSlow else { return }
    droppedStreams["stalled", default: 0] += 1
  }

  /// Tells a stream no more; `false` if that was so already.
  private func forget(_ id: ObjectIdentifier) -> Bool {
    guard let stream = streams.removeValue(forKey: id) else { return false }
    if stream.news != nil {
      stateStreams -= 1
      gateway.updateWatching()
    }
    return true
  }

  /// Adds an event for everybody who streams.
  func append(_ object: EventObject) {
    // Before the first stream there is nobody who could ask for it.
    guard hasStreamed else { return }
    buffer.append(object.bytes, key: object.key)
    hasNews = !streams.isEmpty
  }

  /// Sends what is new to all streams that can take it, and drops those that fell behind.
  func tellStreams(at now: Moment) {
    if let toldAt, toldAt.duration(to: now) < Self.pace {
      streamTimer?.arm(at: toldAt.advanced(by: Self.pace))
      return
    }
    hasNews = false
    toldAt = now
    for stream in streams.values {
      guard stream.isWaiting || stream.cursor >= buffer.first else {
        drop(stream)
        continue
      }
      stream.wake(at: now)
    }
    armHeartbeat(after: now)
  }

  func streamTimePassed() {
    let now = EventLoop.now()
    if hasNews { tellStreams(at: now) }
    for stream in streams.values where stream.spokeAt.advanced(by: Self.heartbeat) <= now {
      stream.beat(at: now)
    }
    armHeartbeat(after: now)
    server?.settle()
  }

  private func armHeartbeat(after now: Moment) {
    guard !streams.isEmpty else { return }
    streamTimer?.arm(at: now.advanced(by: hasNews ? Self.pace : Self.heartbeat))
  }

  /// A client that does not read what it asked for.
  private func drop(_ stream: EventStream) {
    droppedStreams["slow", default: 0] += 1
    _ = forget(ObjectIdentifier(stream))
    gateway.log.warning(
      "Event stream dropped: its client does not read",
      ["peer": stream.exchange.peer, "total": String(droppedStreams["slow"] ?? 0)]
    )
    stream.exchange.drop()
  }
}
