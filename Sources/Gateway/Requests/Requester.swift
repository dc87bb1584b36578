// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Values

/// The sender of a request, which receives its replies: a client of the control socket, or a
/// request over HTTP.
protocol Requester: AnyObject {
  /// Identifies the requester in ``ChangeOrigin/replyTo``; never 0.
  var number: UInt64 { get }
  /// Whether the requester no longer reads replies.
  var hasStoppedReading: Bool { get }
  func send(_ reply: ControlReply)
  /// A change of this requester was accepted or passed on; its answer is due until
  /// ``hasReplied()``.
  func owesReply()
  /// The request sets so many properties, each of which has an answer.
  func expect(parts: Int)
  /// The answer to one change was sent.
  func hasReplied()
  /// A change of this requester waits for later phases.
  func beginWait()
  func endWait()
  /// Says why the change of the next reply is rejected.
  func setRejection(_ reason: ValidationError)
  /// Receives a reply of the gateway of a cluster that drives the device; `isFinal` as in
  /// ``CommandEvent``.
  func pass(_ line: [UInt8], isFinal: Bool)
  /// Whether it is another member of the cluster, which has passed the request on.
  var isPeer: Bool { get }
  /// The origin of changes that name neither id nor source.
  var plainOrigin: ChangeOrigin { get }
}

extension Requester {
  var hasStoppedReading: Bool { false }
  func owesReply() {}
  func expect(parts: Int) {}
  func hasReplied() {}
  func beginWait() {}
  func endWait() {}
  func setRejection(_ reason: ValidationError) {}
  var isPeer: Bool { false }

  func pass(_ line: [UInt8], isFinal: Bool) {
    if let reply = ControlReply(line: line.span) { send(reply) }
  }

  var plainOrigin: ChangeOrigin { ChangeOrigin(source: "socket", replyTo: number) }

  /// The origin of a change, as its events carry it; `parts` is the number of properties of a
  /// change that sets several.
  func origin(of request: ControlRequest, parts: Int = 0) -> ChangeOrigin {
    let isPlain = request.replyID == nil && request.source == nil && request.by == nil
    guard !isPlain || request.wait != nil || parts > 0 else { return plainOrigin }
    return ChangeOrigin(
      id: request.replyID,
      source: request.source ?? "socket",
      by: request.by,
      replyTo: number,
      wantsPhases: request.wait != nil,
      parts: parts
    )
  }
}
