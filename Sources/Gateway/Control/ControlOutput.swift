// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// What waits to be sent to one client of the control socket, in lines.
///
/// One line at a time may be written in parts. Lines that are appended meanwhile follow it.
struct ControlOutput {
  /// How much memory an output may keep when nothing waits, in bytes.
  private static let kept = 64 * 1024
  /// Sent bytes from which on they are removed, so that a client that never quite catches up does
  /// not make this grow.
  private static let compactAt = 64 * 1024

  /// Lines, and the events among them.
  private struct Lines {
    var bytes: [UInt8] = []
    /// Where each event ends.
    var eventEnds: [Int] = []
    var eventBytes = 0

    mutating func append(isEvent: Bool, _ write: (inout [UInt8]) -> Void) {
      let start = bytes.count
      write(&bytes)
      bytes.append(0x0A)
      guard isEvent else { return }
      eventEnds.append(bytes.count)
      eventBytes += bytes.count - start
    }
  }

  /// What can be sent, and what was; its events are those since everything had been sent.
  private var ready = Lines()
  /// The lines that follow the one that is written in parts.
  private var held = Lines()
  /// The bytes at the beginning that were sent.
  private(set) var sent = 0
  /// Whether the last byte that was sent is not the end of a line.
  private var isInLine = false
  /// Where the line begins that is written in parts; below 0 when its beginning was removed.
  private var openLine: Int?
  /// How many of the events were sent to their end.
  private var sentEvents = 0

  /// What can be sent, after what was.
  var bytes: [UInt8] { ready.bytes }
  /// Bytes that can be sent now.
  var sendable: Int { ready.bytes.count - sent }
  /// Bytes that wait.
  var unsent: Int { sendable + held.bytes.count }
  /// Events that wait, as far as they are not the client's own replies.
  var unsentEvents: Int { ready.eventEnds.count - sentEvents + held.eventEnds.count }
  /// The bytes of those events, at most.
  var unsentEventBytes: Int { min(unsent, ready.eventBytes + held.eventBytes) }
  /// The memory that is held.
  var capacity: Int { ready.bytes.capacity + held.bytes.capacity }

  /// Appends a line without its end.
  mutating func append(isEvent: Bool, _ write: (inout [UInt8]) -> Void) {
    if openLine == nil {
      ready.append(isEvent: isEvent, write)
    } else {
      held.append(isEvent: isEvent, write)
    }
  }

  /// Appends a part of a line, which ends with ``endLine()``.
  mutating func appendPart(_ write: (inout [UInt8]) -> Void) {
    if openLine == nil { openLine = ready.bytes.count }
    write(&ready.bytes)
  }

  /// Ends the line that is written in parts.
  mutating func endLine() {
    guard openLine != nil else { return }
    ready.bytes.append(0x0A)
    releaseHeld()
  }

  /// Gives the line up that is written in parts: removes it, or cuts it off if a part was sent.
  mutating func breakLine() {
    guard let start = openLine else { return }
    guard start >= sent else { return endLine() }
    ready.bytes.removeSubrange(start...)
    releaseHeld()
  }

  private mutating func releaseHeld() {
    openLine = nil
    let start = ready.bytes.count
    ready.bytes += held.bytes
    ready.eventEnds += held.eventEnds.map { start + $0 }
    ready.eventBytes += held.eventBytes
    held = Lines()
  }

  /// Records that `count` further bytes were sent.
  mutating func advance(by count: Int) {
    guard count > 0 else { return }
    sent += count
    isInLine = ready.bytes[sent - 1] != 0x0A
    let ends = ready.eventEnds[sentEvents...]
    sentEvents += ends.prefix { $0 <= sent }.count
  }

  /// Frees what was sent, as far as that is of use.
  mutating func compact() {
    if sent == ready.bytes.count {
      openLine = openLine.map { $0 - sent }
      ready.bytes.removeAll(keepingCapacity: ready.bytes.capacity <= Self.kept)
      ready.eventEnds.removeAll(keepingCapacity: ready.eventEnds.capacity <= Self.kept / 64)
      ready.eventBytes = 0
      (sent, sentEvents) = (0, 0)
    } else if sent > Self.compactAt, sent > ready.bytes.count / 2 {
      openLine = openLine.map { $0 - sent }
      ready.bytes.removeFirst(sent)
      ready.eventEnds = ready.eventEnds[sentEvents...].map { $0 - sent }
      (sent, sentEvents) = (0, 0)
    }
  }

  /// Removes everything that waits, but the rest of a line that was sent in part.
  ///
  /// A line that is written in parts is cut off.
  mutating func removeUnsent() {
    var rest: ArraySlice<UInt8> = []
    if isInLine {
      let isOpen = openLine.map { $0 < sent } ?? false
      rest = (isOpen ? [] : ready.bytes[sent...].prefix { $0 != 0x0A }) + [0x0A]
    }
    let wasInLine = isInLine
    self = ControlOutput()
    ready.bytes = Array(rest)
    isInLine = wasInLine
  }
}

/// The work that one turn of the loop does for all clients of the control socket together.
///
/// What is left over is done in later turns, each client in turn. Work is counted in units of about
/// a quarter of a microsecond, so that tests can count it. The time is limited too, for slow
/// machines.
final class TurnBudget {
  /// The units of one turn.
  static let work = 20_000
  /// The units of one client, if others wait for their turn.
  static let slice = 1024
  /// How long a turn may take, in nanoseconds.
  private static let time: UInt64 = 5_000_000

  /// What the parts of a request cost.
  enum Cost {
    /// A line and what most requests do.
    static let line = 8
    /// A key that a pattern is compared with.
    static let key = 2
    /// A row of `get` or `pending`.
    static let row = 10
    /// A row of `describe`.
    static let description = 32
    /// So many bytes of a line cost one unit.
    static let bytes = 32
  }

  private(set) var left = work
  /// Clients that wait for their turn.
  var waiting = 0
  /// Bytes for clients to read since the debts of slow clients were added up.
  var unread = 0
  private var end: UInt64?

  /// Whether the rest has to wait for the next turn.
  var isSpent: Bool {
    guard left > 0 else { return true }
    let now = EventLoop.now().nanoseconds
    guard let end else {
      self.end = now &+ Self.time
      return false
    }
    return now >= end
  }

  /// The units that one client may spend now: its share of what is left, but at least a slice.
  var share: Int { max(Self.slice, left / (waiting + 1)) }

  func spend(_ units: Int) { left -= units }

  /// Begins the next turn.
  func renew() {
    left = Self.work
    end = nil
  }
}
