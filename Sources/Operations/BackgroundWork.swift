// Settle
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Work that blocks, on a thread of its own and one piece at a time; its result comes back to the
/// loop.
///
/// It belongs to the loop's thread.
package final class BackgroundWork<Result: Sendable> {
  /// What the other thread leaves for the loop.
  private final class Mailbox: Sendable {
    let result = Mutex<Result?>(nil)
  }

  private let mailbox = Mailbox()
  private var waker: Waker?
  package private(set) var isRunning = false

  /// `finish` receives each result, on the loop's thread.
  ///
  /// - Throws: When the loop cannot be woken from another thread.
  package init(
    named name: String,
    loop: EventLoop,
    finish: @escaping (Result) -> Void
  ) throws(OperationsError) {
    waker = try loop.makeWaker(named: name) { [weak self] in
      guard let self, let result = mailbox.result.withLock({ $0.take() }) else { return }
      isRunning = false
      finish(result)
    }
  }

  /// Begins a piece of work; call it while nothing ``isRunning``.
  ///
  /// - Throws: When the system has no thread left.
  package func begin(_ work: @escaping @Sendable () -> Result) throws(OperationsError) {
    precondition(!isRunning, "One piece of work runs at a time.")
    let (mailbox, waker) = (mailbox, waker)
    try WorkerThread {
      let result = work()
      mailbox.result.withLock { $0 = result }
      waker?.wake()
    }.detach()
    isRunning = true
  }
}
