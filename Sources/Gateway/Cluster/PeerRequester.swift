// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import JSON

/// The sender of a request that another member has passed on.
final class PeerRequester: Requester {
  let number: UInt64
  let member: String
  /// The request's number, as the other member counts them.
  private let request: UInt64
  private let link: PeerLink
  /// Called once, when no reply follows.
  private let onEnd: (PeerRequester) -> Void
  private var owed = 0
  private var waits = 0
  /// Whether the request was executed, as far as it is at once.
  private var isPerformed = false
  private var isDone = false
  /// How many rows a reply has at most.
  private static let rowsAtOnce = 1000

  var isPeer: Bool { true }

  init(
    number: UInt64,
    member: String,
    request: UInt64,
    link: PeerLink,
    onEnd: @escaping (PeerRequester) -> Void
  ) {
    self.number = number
    self.member = member
    self.request = request
    self.link = link
    self.onEnd = onEnd
  }

  func send(_ reply: ControlReply) {
    switch reply {
    case .pending(let rows, let id) where rows.count > Self.rowsAtOnce:
      for part in rows.parts(Self.rowsAtOnce) { deliver(ControlReply.pending(part, id: id).line) }
    case .logged(let rows, let id) where rows.count > Self.rowsAtOnce:
      for part in rows.parts(Self.rowsAtOnce) { deliver(ControlReply.logged(part, id: id).line) }
    default: deliver(reply.line)
    }
  }

  func pass(_ line: [UInt8], isFinal: Bool) { deliver(line, isFinal: isFinal) }

  private func deliver(_ line: [UInt8], isFinal: Bool = false) {
    guard !isDone else { return }
    link.append(
      .init(kind: .reply, number: request, flags: isFinal ? .final : [], line: line),
      to: member
    )
  }

  func owesReply() { owed += 1 }

  func hasReplied() {
    owed = max(0, owed - 1)
    endIfDone()
  }

  func beginWait() { waits += 1 }

  func endWait() {
    waits = max(0, waits - 1)
    endIfDone()
  }

  /// The request was executed; replies may follow.
  func performed() {
    isPerformed = true
    endIfDone()
  }

  private func endIfDone() {
    guard isPerformed, owed == 0, waits == 0, !isDone else { return }
    isDone = true
    link.append(.init(kind: .reply, number: request, flags: .last), to: member)
    onEnd(self)
  }
}

extension Array {
  fileprivate func parts(_ size: Int) -> [[Element]] {
    stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
  }
}
