// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// Requests to the engine and to other members, each with one answer or none.
final class Requests {
  private struct Pending {
    let deadline: Moment
    let done: (NATSConnection.Message?) -> Void
  }

  private let connection: NATSConnection
  /// Answers arrive on subjects below it.
  private let inbox: String
  private let patience: Duration
  private var pending: [UInt64: Pending] = [:]
  private var count: UInt64 = 0
  private var timer: LoopTimer?
  /// When the timer fires; answers that come in time leave it as it is.
  private var alarm: Moment?

  init(
    _ connection: NATSConnection,
    inbox: String,
    patience: Duration,
    loop: EventLoop
  ) throws(OperationsError) {
    self.connection = connection
    self.inbox = inbox
    self.patience = patience
    timer = try loop.makeTimer(named: "answers of the cluster's engine") { [unowned self] in
      expire(at: EventLoop.now())
    }
  }

  /// Sends a request; `done` is called once: with the answer, or with `nil` when none has come in
  /// time.
  func send(
    _ bytes: [UInt8],
    to subject: String,
    condition: NATSConnection.Condition? = nil,
    _ done: @escaping (NATSConnection.Message?) -> Void
  ) {
    count += 1
    let number = count
    // Without a connection the answer is known: there will be none. Callers expect it later.
    let reply = "\(inbox).\(number)"
    let isSent = connection.publish(bytes, to: subject, reply: reply, condition: condition)
    let now = EventLoop.now()
    let deadline = isSent ? now.advanced(by: patience) : now
    pending[number] = Pending(deadline: deadline, done: done)
    arm(at: deadline)
  }

  /// Takes a message if it is an answer.
  func receive(_ message: NATSConnection.Message) -> Bool {
    guard message.subject.hasPrefix(inbox),
      let number = UInt64(message.subject.dropFirst(inbox.count + 1))
    else { return false }
    let waiting = pending.removeValue(forKey: number)
    waiting?.done(message)
    return true
  }

  private func expire(at now: Moment) {
    alarm = nil
    for (number, waiting) in pending.sorted(by: { $0.key < $1.key }) where waiting.deadline <= now {
      pending[number] = nil
      waiting.done(nil)
    }
    if let next = pending.values.map(\.deadline).min() { arm(at: next) }
  }

  private func arm(at deadline: Moment) {
    if let alarm, alarm <= deadline { return }
    alarm = deadline
    timer?.arm(at: deadline)
  }
}
