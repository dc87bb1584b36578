// Settle
// SPDX-License-Identifier: Apache-2.0

private import Synchronization

/// An engine of closures whose keys are unique numbers.
typealias TaskEngine = QueueEngine<Int, LastOutTask>

extension QueueEngine where Key == Int, Value == LastOutTask {
  /// Serves all delayed tasks of the program on the machine's clock.
  static let tasks = make(time: DriverSeat(.queues), place: LastOutExecutor.threads.place)
  /// Serves all watchdogs of the program, with a dedicated driver and threads.
  static let watchdogs = make(
    time: DriverSeat(.watchdogs),
    place: .threads(.watchdogs, limit: 4096)
  )

  /// A unique number.
  static func newKey() -> Int {
    TaskKeys.next()
  }

  private static func make(time: any Timekeeper, place: TaskPlace) -> TaskEngine {
    let report = RunReport<String, LastOutTask>(onError: nil, log: nil)
    return QueueEngine(policy: .standard, time: time, place: place) { _, run, _ in
      report.run(run.value, forKey: "delayed task")
    }
  }

  /// The engine of the delayed tasks on `clock`.
  static func tasks(on clock: any Clock<Duration>) -> TaskEngine {
    clock is SuspendingClock
      ? tasks : make(time: clock.timekeeper(), place: clock.defaultPlace)
  }

  /// The engine of the watchdogs on `clock`.
  static func watchdogs(on clock: any Clock<Duration>) -> TaskEngine {
    clock is SuspendingClock
      ? watchdogs : make(time: clock.timekeeper(), place: clock.watchdogPlace)
  }
}

/// Allocates the keys of tasks.
private enum TaskKeys {
  static let newest = Atomic(0)

  static func next() -> Int { newest.add(1, ordering: .relaxed).newValue }
}

extension Clock where Duration == Swift.Duration {
  /// Where the handlers of watchdogs on this clock run.
  fileprivate var watchdogPlace: TaskPlace {
    self is any EngineClock ? .here(exact: true) : .threads(.watchdogs, limit: 4096)
  }
}
