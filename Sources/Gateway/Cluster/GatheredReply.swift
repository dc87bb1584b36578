// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import JSONParsing

/// A request about keys of several members: collects what each replies, and replies once.
final class GatheredReply {
  private let request: ControlRequest
  private let requester: any Requester
  private var left: Int
  private var pending: [PendingRow] = []
  private var logged: [EventObject] = []
  private var count = 0
  private var failure: ErrorReply?
  /// Called once, when the reply was sent.
  var onEnd: (() -> Void)?

  /// `parts` is how many members are asked.
  init(_ request: ControlRequest, for requester: any Requester, parts: Int) {
    self.request = request
    self.requester = requester
    left = parts
    requester.owesReply()
  }

  /// Who sends the request to one of the members.
  func makePart() -> any Requester { Part(self) }

  private func receive(_ reply: ControlReply) {
    switch reply {
    case .pending(let rows, _): pending += rows
    case .logged(let rows, _): logged += rows
    case .flushed(let part, _), .cancelled(let part, _): count += part
    case .failure(let error, _): failure = error
    case .event, .watched, .recorded, .targets, .described, .reloaded, .status, .devices, .words,
      .previewed:
      break
    }
  }

  private func partEnded() {
    left -= 1
    guard left == 0 else { return }
    requester.send(reply)
    requester.hasReplied()
    onEnd?()
  }

  private var reply: ControlReply {
    let id = request.replyID
    if let failure { return .failure(failure, id: id) }
    return switch request.operation {
    case .pending: .pending(pending, id: id)
    case .log: .logged(logged.sorted { ($0.key, $0.at) < ($1.key, $1.at) }, id: id)
    case .flush: .flushed(count, id: id)
    default: .cancelled(count, id: id)
    }
  }

  private final class Part: Requester {
    let number: UInt64 = 1
    private let whole: GatheredReply
    private var isEnded = false

    init(_ whole: GatheredReply) { self.whole = whole }

    func send(_ reply: ControlReply) { whole.receive(reply) }

    func hasReplied() {
      guard !isEnded else { return }
      isEnded = true
      whole.partEnded()
    }
  }
}
