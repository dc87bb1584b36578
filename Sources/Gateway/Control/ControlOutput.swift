// Settle
// SPDX-License-Identifier: Apache-2.0

/// What waits to be sent to one client of the control socket, in whole lines.
struct ControlOutput {
  /// How much memory an output may keep when nothing waits, in bytes.
  private static let kept = 64 * 1024
  /// Sent bytes from which on they are removed, so that a client that never quite catches up does
  /// not make this grow.
  private static let compactAt = 256 * 1024

  private(set) var bytes: [UInt8] = []
  /// The bytes at the beginning that were sent.
  private(set) var sent = 0
  /// Where each event ends that was appended since everything had been sent.
  private var eventEnds: [Int] = []
  /// How many of them were sent to their end.
  private var sentEvents = 0
  private var eventBytes = 0

  /// Bytes that wait.
  var unsent: Int { bytes.count - sent }
  /// Events that wait, as far as they are not the client's own replies.
  var unsentEvents: Int { eventEnds.count - sentEvents }
  /// The bytes of those events, at most.
  var unsentEventBytes: Int { min(unsent, eventBytes) }
  /// The memory that is held.
  var capacity: Int { bytes.capacity }

  /// Appends a line without its end.
  mutating func append(isEvent: Bool, _ write: (inout [UInt8]) -> Void) {
    let start = bytes.count
    write(&bytes)
    bytes.append(0x0A)
    guard isEvent else { return }
    eventEnds.append(bytes.count)
    eventBytes += bytes.count - start
  }

  /// Records that `count` further bytes were sent.
  mutating func advance(by count: Int) {
    sent += count
    while sentEvents < eventEnds.count, eventEnds[sentEvents] <= sent { sentEvents += 1 }
  }

  /// Frees what was sent, as far as that is of use.
  mutating func compact() {
    if sent == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.kept)
      (sent, sentEvents, eventBytes) = (0, 0, 0)
      eventEnds.removeAll(keepingCapacity: eventEnds.capacity <= Self.kept / 64)
    } else if sent > Self.compactAt, sent > bytes.count / 2 {
      bytes.removeFirst(sent)
      eventEnds = eventEnds[sentEvents...].map { $0 - sent }
      (sent, sentEvents) = (0, 0)
    }
  }

  /// Removes everything that waits, but the rest of a line that was sent in part.
  mutating func removeUnsent() {
    var rest: ArraySlice<UInt8> = []
    if sent > 0, bytes[sent - 1] != 0x0A {
      rest = bytes[sent...].prefix { $0 != 0x0A } + [0x0A]
    }
    self = ControlOutput()
    bytes = Array(rest)
  }
}
