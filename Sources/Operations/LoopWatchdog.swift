// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import LastOut
import Synchronization

/// Reports when an event loop takes too long for one batch of events, and in which phase.
///
/// It checks from its own thread, which sleeps until a batch could have taken too long, and without
/// a limit while the loop sleeps: an idle process is woken at most once after its last event. The
/// loop pays one atomic store per event, and at most one system call per ``limit``.
package final class LoopWatchdog {
  package let limit: Duration
  private let pulse: LoopPulse
  private let patrol: Patrol
  private let thread: WorkerThread

  /// Starts watching; create and release it on the loop's thread.
  ///
  /// - Parameters:
  ///   - loop: The loop to watch; at most one watchdog at a time.
  ///   - limit: The maximum length of a batch, at least a millisecond.
  ///   - onStall: Called once for each batch that takes longer, on the watchdog's thread, with the
  ///     name of the phase and the time since the start of the batch.
  /// - Throws: If the process is out of descriptors or threads.
  package init(
    _ loop: EventLoop,
    limit: Duration = .milliseconds(250),
    onStall: @escaping @Sendable (_ what: String, _ elapsed: Duration) -> Void
  ) throws(OperationsError) {
    self.limit = limit
    pulse = loop.pulse
    let milliseconds = max(limit / .milliseconds(1), 1)
    patrol = try Patrol(pulse: loop.pulse, limit: UInt64(milliseconds), onStall: onStall)
    thread = try WorkerThread { [patrol] in patrol.run() }
    pulse.attach(timer: patrol.timer, limit: UInt64(milliseconds))
  }

  deinit {
    pulse.detach()
    patrol.stop()
    thread.join()
  }

  /// The number of wake-ups of the watchdog's thread.
  package var wakeUps: Int { patrol.wakeUps.load(ordering: .relaxed) }

  /// The state of the thread.
  private final class Patrol: Sendable {
    let timer: Int32
    let wakeUps = Atomic<Int>(0)
    private let pulse: LoopPulse
    private let limit: UInt64
    private let onStall: @Sendable (String, Duration) -> Void
    private let isStopping = Atomic<Bool>(false)

    init(
      pulse: LoopPulse,
      limit: UInt64,
      onStall: @escaping @Sendable (String, Duration) -> Void
    ) throws(OperationsError) {
      self.pulse = pulse
      self.limit = limit
      self.onStall = onStall
      timer = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC))
      guard timer >= 0 else { throw OperationsError(call: "timerfd_create", code: errno) }
    }

    deinit { close(timer) }

    func stop() {
      isStopping.store(true, ordering: .releasing)
      LoopPulse.set(timer, to: 0)
    }

    func run() {
      var reported: UInt64 = 0
      var expirations: UInt64 = 0
      while true {
        _ = unsafe read(timer, &expirations, 8)
        if isStopping.load(ordering: .acquiring) { return }
        wakeUps.add(1, ordering: .relaxed)
        guard let reading = pulse.read() else { continue }
        let elapsed = EventLoop.now().nanoseconds / 1_000_000 &- reading.start
        guard elapsed >= limit else {
          pulse.look(again: reading)
          continue
        }
        // The loop's next event sets the timer again.
        guard reading.start != reported else { continue }
        reported = reading.start
        onStall(reading.name, .milliseconds(Int64(clamping: elapsed)))
      }
    }
  }
}
