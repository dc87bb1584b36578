// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import Values

/// One change or query over HTTP that waits for its replies.
final class HTTPChange: Requester {
  let number: UInt64
  /// Why it was rejected, if it was.
  private(set) var rejection: ValidationError?
  private let wait: ControlRequest.Wait?
  /// Receives each reply; the last one once.
  private let onReply: (_ reply: ControlReply, _ change: HTTPChange, _ isLast: Bool) -> Void
  private(set) var isDone = false
  /// The properties that the change sets; one, unless it is about a device.
  private var parts = 0
  /// The keys that are as far as is waited for, of several.
  private var ended: Set<String> = []

  init(
    number: UInt64,
    wait: ControlRequest.Wait?,
    onReply: @escaping (ControlReply, HTTPChange, Bool) -> Void
  ) {
    self.number = number
    self.wait = wait
    self.onReply = onReply
  }

  func owesReply() { parts += 1 }

  func setRejection(_ reason: ValidationError) { rejection = reason }

  /// A reply after which nothing follows.
  func send(_ reply: ControlReply) { deliver(reply, isLast: true) }

  /// Receives a phase of the change.
  func receive(_ event: EventObject, id: JSONValue?, isFinal: Bool) {
    let isLast =
      switch event.phase {
      case .accepted: wait == nil
      case .sent: isFinal || wait != .confirmed
      case .sending: false
      case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
      }
    // Without a wait the only reply is the answer, which is late for a step that waits for the
    // device's state.
    guard wait != nil || isLast else { return }
    guard parts > 1 else { return deliver(.event(event, id: id), isLast: isLast) }
    guard !ended.contains(event.key) else { return }
    if isLast { ended.insert(event.key) }
    deliver(.event(event, id: id), isLast: ended.count == parts)
  }

  func pass(_ line: [UInt8], isFinal: Bool) {
    guard let reply = ControlReply(line: line.span) else { return }
    guard case .event(let event, let id) = reply else { return send(reply) }
    if let count = event.of, parts < count { parts = count }
    receive(event, id: id, isFinal: isFinal)
  }

  /// Delivers no further reply: the client is gone.
  func forget() { isDone = true }

  private func deliver(_ reply: ControlReply, isLast: Bool) {
    guard !isDone else { return }
    isDone = isLast
    onReply(reply, self, isLast)
  }
}
