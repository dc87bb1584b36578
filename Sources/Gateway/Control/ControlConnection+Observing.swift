// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut

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
