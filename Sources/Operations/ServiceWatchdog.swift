// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut

/// Notifies the service manager at a fixed period that the event loop is alive.
///
/// A timer of the loop sends the notifications: if the loop hangs, they stop, and systemd, with
/// `WatchdogSec=`, restarts the program.
package final class ServiceWatchdog {
  private let timer: LoopTimer

  /// Notifies at once, and then every `period` until this object is released.
  ///
  /// - Parameters:
  ///   - loop: The loop to monitor.
  ///   - period: The time between notifications; see ``period(_:)``.
  ///   - feed: Sends a notification; default: ``Notify/alive()``.
  /// - Throws: The errors of ``EventLoop/makeTimer(named:_:)``.
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

  /// Gives the handler access to its timer.
  private final class Cycle {
    weak var timer: LoopTimer?
  }

  /// Half the watchdog timeout of the service manager; `nil` if there is none.
  ///
  /// `variable` looks up `WATCHDOG_USEC` and `WATCHDOG_PID`, the process that it applies to.
  package static func period(
    _ variable: (String) -> String? = { Environment[$0] }
  ) -> Duration? {
    guard let microseconds = variable("WATCHDOG_USEC").flatMap({ Int64($0) }), microseconds > 0
    else { return nil }
    if let process = variable("WATCHDOG_PID"), Int32(process) != getpid() { return nil }
    return .microseconds(max(microseconds / 2, 1))
  }
}
