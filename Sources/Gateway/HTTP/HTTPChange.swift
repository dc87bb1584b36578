// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON

/// One request over HTTP that waits for the gateway's word.
final class HTTPChange: Requester {
  let number: UInt64
  /// Why it was refused, if it was.
  private(set) var refusal: ValidationError?
  private let wait: ControlRequest.Wait?
  /// Takes each reply; the last one comes once.
  private let hear: (_ reply: ControlReply, _ change: HTTPChange, _ isLast: Bool) -> Void
  private(set) var isDone = false

  init(
    number: UInt64,
    wait: ControlRequest.Wait?,
    hear: @escaping (ControlReply, HTTPChange, Bool) -> Void
  ) {
    self.number = number
    self.wait = wait
    self.hear = hear
  }

  func note(_ refusal: ValidationError) { self.refusal = refusal }

  /// A reply after which nothing follows.
  func send(_ reply: ControlReply) { tell(reply, isLast: true) }

  /// A phase of the change.
  func tell(_ event: EventObject, id: JSONValue?, isFinal: Bool) {
    let isLast =
      switch event.phase {
      case .accepted: wait == nil
      case .sent: isFinal || wait != .confirmed
      case .sending: false
      case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
      }
    // Without a wait only the answer is of interest, which a step that waits for the device's state
    // gets late.
    guard wait != nil || isLast else { return }
    tell(.event(event, id: id), isLast: isLast)
  }

  /// Nobody is interested any more.
  func forget() { isDone = true }

  private func tell(_ reply: ControlReply, isLast: Bool) {
    guard !isDone else { return }
    isDone = isLast
    hear(reply, self, isLast)
  }
}
