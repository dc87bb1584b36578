// Settle
// SPDX-License-Identifier: Apache-2.0

/// The parts of an event stream other than the numbered events.
package enum EventStreamText {
  package static let mediaType = "text/event-stream"
  /// A comment that keeps the connection alive.
  package static let heartbeat = Array(": \n\n".utf8)

  /// The start of a stream, with the reconnection time, and the number of the event before it, from
  /// which a client continues that has received none.
  package static func opening(retry milliseconds: Int, after last: UInt64? = nil) -> [UInt8] {
    Array("\(last.map { "id: \($0)\n" } ?? "")retry: \(milliseconds)\n\n".utf8)
  }

  /// An event with a name and without a number, which is not kept.
  package static func named(_ name: String, _ json: [UInt8]) -> [UInt8] {
    Array("event: \(name)\ndata: ".utf8) + json + [0x0A, 0x0A]
  }

  /// The gateway's time at the head of a stream, and when it began, in milliseconds.
  package static func time(_ milliseconds: Int64, since start: Int64) -> [UInt8] {
    named("time", Array("{\"time_ms\":\(milliseconds),\"since_ms\":\(start)}".utf8))
  }

  /// Reports missing events; `last` is the number that the client sent, `first` that of the next
  /// event.
  package static func gap(after last: String, until first: UInt64) -> [UInt8] {
    let after = UInt64(last).map { String($0) } ?? "null"
    return Array("event: gap\ndata: {\"after\":\(after),\"until\":\(first)}\n\n".utf8)
  }
}
