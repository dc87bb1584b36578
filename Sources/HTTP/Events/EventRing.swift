// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// The last events, numbered in a row, ready to be sent to any number of clients.
///
/// Clients hold a number each and no bytes, so that a slow one costs nothing; one that falls behind
/// the oldest event has lost some.
package struct EventRing {
  private struct Entry {
    var key: String
    var bytes: [UInt8]
  }

  /// The entries in a ring: number `n` stands at `n % capacity`.
  private var ring: [Entry?]
  private var storedBytes = 0
  private let byteLimit: Int
  /// The number of the oldest event that is kept.
  package private(set) var first: UInt64
  /// The number that the next event gets.
  package private(set) var next: UInt64

  /// Keeps at most `capacity` events and `byteLimit` bytes; the first one gets the number `start`.
  package init(capacity: Int, startingAt start: UInt64, byteLimit: Int = 4 << 20) {
    ring = Array(repeating: nil, count: max(1, capacity))
    first = start
    next = start
    self.byteLimit = byteLimit
  }

  /// Adds an event about `key`, whose JSON text has no line break.
  package mutating func append(_ json: [UInt8], key: String) {
    var bytes = Array("id: \(next)\ndata: ".utf8)
    bytes += json
    bytes += [0x0A, 0x0A]
    storedBytes += bytes.count
    if next - first == UInt64(ring.count) { dropFirst() }
    ring[place(next)] = Entry(key: key, bytes: bytes)
    next += 1
    while storedBytes > byteLimit, first + 1 < next { dropFirst() }
  }

  /// Appends what a client wants from `cursor` on to `output`, at most `room` bytes beyond its
  /// first event, and moves the cursor.
  package func read(
    from cursor: inout UInt64,
    matching pattern: Pattern?,
    room: Int,
    into output: inout [UInt8]
  ) {
    cursor = max(cursor, first)
    while cursor < next {
      guard let entry = ring[place(cursor)] else {
        preconditionFailure("Every number from the first to the next has its event.")
      }
      if pattern?.matches(entry.key) ?? true {
        guard output.isEmpty || output.count + entry.bytes.count <= room else { return }
        output += entry.bytes
      }
      cursor += 1
    }
  }

  /// Moves a cursor past the events that its client does not want.
  package func skip(from cursor: inout UInt64, matching pattern: Pattern?) {
    cursor = max(cursor, first)
    guard let pattern else { return }
    while cursor < next, let entry = ring[place(cursor)], !pattern.matches(entry.key) {
      cursor += 1
    }
  }

  private mutating func dropFirst() {
    storedBytes -= ring[place(first)]?.bytes.count ?? 0
    ring[place(first)] = nil
    first += 1
  }

  private func place(_ number: UInt64) -> Int { Int(number % UInt64(ring.count)) }
}

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
