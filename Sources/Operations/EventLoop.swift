// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// One thread's event loop over libuv: sockets, timers, signals, wake-ups from other threads.
///
/// Belongs to the thread that runs it; nothing here is thread safe but ``Waker``.
/// Handlers run on that thread, one at a time, never nested inside a call made to the loop.
package final class EventLoop {
  /// Creates the loop.
  package init() throws(OperationsError) { fatalError("skeleton") }

  /// Reads the monotonic clock (CLOCK_MONOTONIC, never the coarse one).
  package static func now() -> Moment { fatalError("skeleton") }

  /// Handles events until ``stop()``.
  package func run() { fatalError("skeleton") }
  package func stop() { fatalError("skeleton") }

  /// Watches a file descriptor. The watch must be cancelled before the descriptor is closed.
  package func watch(
    _ descriptor: Int32, for interest: IOInterest, handler: @escaping (IOInterest) -> Void
  ) throws(OperationsError) -> IOWatch { fatalError("skeleton") }

  /// A timer to be armed with absolute deadlines (timerfd: sub-millisecond, never early).
  package func makeTimer(_ handler: @escaping () -> Void) throws(OperationsError) -> LoopTimer {
    fatalError("skeleton")
  }

  /// Runs `handler` on each delivery of a signal, on the loop's thread.
  package func onSignal(_ number: Int32, handler: @escaping () -> Void) throws(OperationsError) {
    fatalError("skeleton")
  }

  /// A wake-up that other threads may send; several before the loop looks count as one.
  package func makeWaker(_ handler: @escaping () -> Void) throws(OperationsError) -> Waker {
    fatalError("skeleton")
  }

  /// Called after every batch of events, before the loop sleeps: the place to hand out what the
  /// batch left to do.
  package var afterBatch: (() -> Void)?
}

package struct IOInterest: OptionSet, Hashable, Sendable {
  package let rawValue: Int32
  package init(rawValue: Int32) { self.rawValue = rawValue }
  package static let read = IOInterest(rawValue: 1)
  package static let write = IOInterest(rawValue: 2)
  /// The peer closed or the descriptor failed; reported whether asked for or not.
  package static let hangUp = IOInterest(rawValue: 4)
}

package final class IOWatch {
  package var interest: IOInterest = []  // setting changes what is watched, at once
  package func cancel() { fatalError("skeleton") }
}

package final class LoopTimer {
  /// Fires once at `deadline`, replacing any earlier arming; `nil` disarms.
  package func arm(at deadline: Moment?) { fatalError("skeleton") }
  package func cancel() { fatalError("skeleton") }
}

package final class Waker: Sendable {
  /// Wakes the loop; from any thread.
  package func wake() { fatalError("skeleton") }
}
