// Settle
// SPDX-License-Identifier: Apache-2.0

private import Synchronization

/// A closure that runs once, after a delay, unless it is cancelled first.
///
/// Releasing the object, or assigning another task to the same variable, neither cancels nor delays
/// the task. An error that the task throws is written to standard error.
public final class DelayedTask: Sendable {
  private let engine: TaskEngine
  private let key: Int
  private let run: LastOutRun

  /// Schedules `task` to run on a thread of the library.
  ///
  /// - Parameters:
  ///   - delay: How long to wait; negative counts as zero.
  ///   - clock: The clock; by default the machine's monotonic clock.
  ///   - task: The task. It is freed when it has run or is cancelled.
  @discardableResult
  public convenience init(
    after delay: Duration,
    clock: any Clock<Duration> = SuspendingClock(),
    task: @escaping @Sendable () throws -> Void
  ) {
    self.init(.plain(task), after: delay, clock: clock)
  }

  /// Schedules an asynchronous task.
  ///
  /// - Parameters:
  ///   - delay: How long to wait; negative counts as zero.
  ///   - clock: The clock; by default the machine's monotonic clock.
  ///   - task: The task. It is freed when it has run or is cancelled.
  @discardableResult
  public convenience init(
    after delay: Duration,
    clock: any Clock<Duration> = SuspendingClock(),
    task: @escaping @Sendable @isolated(any) () async throws -> Void
  ) {
    self.init(LastOutTask.Body(asynchronous: task), after: delay, clock: clock)
  }

  /// Schedules a task to run on the main actor.
  ///
  /// - Parameters:
  ///   - delay: How long to wait; negative counts as zero.
  ///   - clock: The clock; by default the machine's monotonic clock.
  ///   - task: The task. It is freed when it has run or is cancelled.
  @discardableResult
  public convenience init<Failure: Error>(
    after delay: Duration,
    clock: any Clock<Duration> = SuspendingClock(),
    task: @escaping @Sendable @MainActor () throws(Failure) -> Void
  ) {
    self.init(.main(task), after: delay, clock: clock)
  }

  private init(_ body: LastOutTask.Body, after delay: Duration, clock: any Clock<Duration>) {
    engine = .tasks(on: clock)
    key = TaskEngine.newKey()
    var body = body
    run = engine.enqueue(&body, for: key, delay: delay).run
  }

  /// How the task ended; suspends until then.
  public var outcome: LastOutRun.Outcome { get async { await run.outcome } }

  /// Drops the task, or cancels it if it is asynchronous and has started.
  ///
  /// The captures of a dropped task are freed before this method returns.
  ///
  /// - Returns: `cancelled`; `alreadyStarted` if the task has started or ended; `nothing` if it was
  ///   cancelled before.
  @discardableResult
  public func cancel() -> CancelOutcome { run.cancel() }

  /// Runs the task, unless it has started or is cancelled, and returns when it has ended.
  ///
  /// It runs on the calling thread unless it is asynchronous. See
  /// ``LastOutValueQueue/flushAll(timeout:)`` for what this method cannot wait for.
  ///
  /// - Returns: Whether this call started it.
  @discardableResult
  public func runNow() -> Bool { engine.flush(key) != .nothing }
}

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
