// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut

/// Tells the service manager at a fixed pace that the event loop turns.
///
/// Fed by a timer of that loop: a loop that hangs feeds nothing, and systemd, with `WatchdogSec=`,
/// starts the program anew.
package final class ServiceWatchdog {
  private let timer: LoopTimer

  /// Feeds at once, and then every `period` for as long as this object lives.
  ///
  /// - Parameters:
  ///   - loop: The loop whose turning is told.
  ///   - period: The time from feeding to feeding; see ``period(_:)``.
  ///   - feed: Tells it; ``Notify/alive()`` by default.
  /// - Throws: What ``EventLoop/makeTimer(named:_:)`` throws.
  package init(
    _ loop: EventLoop,
    every period: Duration,
    feed: @escaping () -> Void = Notify.alive
  ) throws(OperationsError) {
    let cycle = Cycle()
    let timer = try loop.makeTimer(named: "service watchdog") {
      feed()
      cycle.timer?.arm(at: EventLoop.now().advanced(by: period))
    }
    cycle.timer = timer
    self.timer = timer
    timer.arm(at: .zero)
  }

  deinit { timer.cancel() }

  /// Lets the handler reach its own timer.
  private final class Cycle {
    weak var timer: LoopTimer?
  }

  /// Half the time in which the service manager wants to hear something; `nil` if it does not.
  ///
  /// `variable` looks up `WATCHDOG_USEC` and `WATCHDOG_PID`, the process that is meant.
  package static func period(
    _ variable: (String) -> String? = { Environment[$0] }
  ) -> Duration? {
    guard let microseconds = variable("WATCHDOG_USEC").flatMap({ Int64($0) }), microseconds > 0
    else { return nil }
    if let process = variable("WATCHDOG_PID"), Int32(process) != getpid() { return nil }
    return .microseconds(max(microseconds / 2, 1))
  }
}
