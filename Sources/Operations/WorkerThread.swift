// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A thread that runs one closure and holds it until it returns.
///
/// Call ``join()`` or ``detach()``, once.
package struct WorkerThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let identifier: pthread_t

  /// Starts at once.
  ///
  /// - Throws: When the system has no thread left.
  package init(_ run: @escaping @Sendable () -> Void) throws(OperationsError) {
    let argument = unsafe Unmanaged.passRetained(Body(run)).toOpaque()
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      argument
    )
    guard code == 0 else {
      unsafe Unmanaged<Body>.fromOpaque(argument).release()
      throw OperationsError(call: "pthread_create", code: code)
    }
    identifier = thread
  }

  /// Waits until the closure has returned.
  package func join() { pthread_join(identifier, nil) }

  /// Lets the thread end by itself; it also frees what the closure holds.
  package func detach() { pthread_detach(identifier) }
}

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
