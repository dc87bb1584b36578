// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut

/// Ending who holds others up.
extension ControlConnection {
  /// What this client owes to others: the memory of what it has not read.
  var debt: Int { isFull && !isEnding ? output.capacity : 0 }

  /// Bytes of events that wait, at most.
  var eventBytes: Int { output.unsentEventBytes }

  /// Events that wait for a client that reads nothing.
  func stalledEvents(at now: Moment) -> Int { isStalled(at: now) ? output.unsentEvents : 0 }

  /// Whether the client has read nothing for a second, although something waits for it.
  func isStalled(at now: Moment) -> Bool { Self.isOld(stalledSince, .seconds(1), at: now) }

  /// Whether the client has lagged behind for a while, with its requests or with its reading.
  func isBehind(at now: Moment) -> Bool { Self.isOld(behindSince, .milliseconds(100), at: now) }

  private static func isOld(_ start: Moment?, _ age: Duration, at now: Moment) -> Bool {
    start.map { $0.duration(to: now) >= age } ?? false
  }

  /// Drops the events that wait, says how many they are, and ends the connection once that is sent.
  func endAsTooSlow() -> Int {
    let count = output.unsentEvents
    output.removeUnsent()
    let message =
      count > 0
      ? "\(count) events were dropped: this client does not read them"
      : "replies were dropped: this client does not read them"
    end(saying: ErrorReply(.limit, message))
    return count
  }

  /// The next moment at which ``endIfLate(at:)`` or ``isLateReader(at:)`` may find something.
  var deadline: Moment? {
    let reading = owesReplies && !isEnding ? stalledSince : nil
    guard let first = [unfinishedSince, reading].compactMap(\.self).min() else { return nil }
    return first.advanced(by: Self.lineTime)
  }

  /// Whether the client has read nothing of its replies for too long.
  ///
  /// One that waits for events only is not late: it may be suspended.
  func isLateReader(at now: Moment) -> Bool {
    guard !isEnding, owesReplies, let since = stalledSince else { return false }
    return since.advanced(by: Self.lineTime) <= now
  }

  /// Whether replies wait for the client to read them.
  private var owesReplies: Bool {
    walk?.rows != nil || output.unsent > output.unsentEventBytes
  }

  /// Ends the connection if a line has taken too long.
  func endIfLate(at now: Moment) {
    guard let since = unfinishedSince, since.advanced(by: Self.lineTime) <= now else { return }
    if isEnding { return end() }
    // What is not read is not late.
    guard !isPaused, !hasLines, !hasInput else { return unfinishedSince = now }
    end(saying: ErrorReply(.incompleteLine, "the line did not end within 20 s"))
  }
}

/// What the client watches and records.
extension ControlConnection {
  /// A pattern whose events the client wants, under the id it gave.
  struct Watch {
    let pattern: Pattern
    let id: JSONValue?
  }

  /// A pattern whose changes the client writes down, under the id it gave.
  struct Recording {
    let pattern: Pattern
    let id: JSONValue?
    /// From when on their time is counted.
    let start: Moment
  }

  /// How many patterns a client may watch and record, because each event is sent once for each.
  static let observationLimit = 16

  /// The client is told what others do, however much that is.
  var isListening: Bool { !watches.isEmpty || !recordings.isEmpty }

  /// Whether the client may watch or record one more pattern.
  var canObserveMore: Bool { watches.count + recordings.count < Self.observationLimit }

  /// Sends an event that the client watches, whose text is `event`.
  func sendWatched(_ event: [UInt8], watch id: JSONValue?) {
    sendLine(isEvent: true) { ControlReply.appendWatched(event, watch: id, to: &$0) }
  }

  /// Sends an event that the client records.
  func sendEvent(_ reply: ControlReply) { sendLine(isEvent: true) { reply.append(to: &$0) } }
}
