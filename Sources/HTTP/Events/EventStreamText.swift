// Settle
// SPDX-License-Identifier: Apache-2.0

/// What stands in an event stream beside the events.
package enum EventStreamText {
  package static let mediaType = "text/event-stream"
  /// A line that only shows that the connection lives.
  package static let heartbeat = Array(": \n\n".utf8)

  /// The beginning: how soon to come again.
  package static func opening(retry milliseconds: Int) -> [UInt8] {
    Array("retry: \(milliseconds)\n\n".utf8)
  }

  /// An event that has a name and no number, since it is not one of those that are kept.
  package static func named(_ name: String, _ json: [UInt8]) -> [UInt8] {
    Array("event: \(name)\ndata: ".utf8) + json + [0x0A, 0x0A]
  }

  /// Says that events are missing in front of what follows; `last` is the number that the client
  /// gave, `first` the next that it gets.
  package static func gap(after last: String, until first: UInt64) -> [UInt8] {
    let after = UInt64(last).map { String($0) } ?? "null"
    return Array("event: gap\ndata: {\"after\":\(after),\"until\":\(first)}\n\n".utf8)
  }
}
