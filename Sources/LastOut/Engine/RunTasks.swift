// Settle
// SPDX-License-Identifier: Apache-2.0

private import Synchronization

/// Continues runs beyond the call that started them.
enum RunTasks {
  /// Continues the current run as a task, which ends the run.
  ///
  /// The task prefers the executor of its engine, so a blocked thread of Swift's own pool does not
  /// delay it.
  ///
  /// - Parameters:
  ///   - handle: The run of a queue's task; `nil` for the run of a value.
  ///   - isolation: The actor that the body needs; `nil` for none.
  ///   - carried: The task, if it was made before.
  ///   - body: What is left of the run.
  static func begin(
    _ handle: LastOutRun?,
    isolation: (any Actor)?,
    _ carried: CarriedOperation?,
    _ body: @escaping @Sendable () async -> Void
  ) {
    let isMain = isolation.map { $0 === MainActor.shared } ?? false
    let (end, plan) = RunMark.beginTask(TaskNeeds(handle: handle, isMain: isMain, mainJob: nil))
    let run: @Sendable () async -> Void = {
      await AsyncRunMark.during(end, body)
      end()
    }
    if let carried {
      end.engine.own(carried.task, of: end.key, number: plan.number)
      carried.carrier.start(on: plan.executor, run)
    } else {
      let task = Task.detached(
        executorPreference: plan.executor,
        priority: plan.priority,
        operation: run
      )
      end.engine.own(task, of: end.key, number: plan.number)
    }
    if plan.mayCloseCircle { WaitGraph.refuseCircles() }
  }

  /// Continues the current run on the main thread, even while that waits for the run.
  static func beginOnMain(_ handle: LastOutRun?, _ body: @escaping @Sendable () -> Void) {
    let job = MainJob(RunMark.detach(), body)
    let (_, plan) = RunMark.beginTask(TaskNeeds(handle: handle, isMain: true, mainJob: job))
    Task { @MainActor in job() }
    if plan.mayCloseCircle { WaitGraph.refuseCircles() }
  }
}

/// What a run that outlives its call needs.
@usableFromInline
@frozen
package struct TaskNeeds: Sendable {
  /// The run, if it belongs to a task of a queue.
  let handle: LastOutRun?
  /// Whether it needs the main thread.
  let isMain: Bool
  /// All that is left of the run, if the main thread can do it at once.
  let mainJob: MainJob?
}

/// The rest of a run, for the main thread.
@usableFromInline
package final class MainJob: Sendable {
  private let run: RunEnd
  private let body: @Sendable () -> Void
  private let hasStarted = Atomic(false)

  init(_ run: RunEnd, _ body: @escaping @Sendable () -> Void) {
    self.run = run
    self.body = body
  }

  /// Ends the run, with the first call.
  func callAsFunction() {
    guard !hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return }
    var awaited = Awaited.no
    _ = RunMark.during(run.engine, run.key, awaited: &awaited, body)
    run()
  }
}

/// How an engine runs a task.
@usableFromInline
@frozen
package struct TaskPlan: Sendable {
  /// Distinguishes the task from later ones of its key.
  let number: Int
  let executor: any TaskExecutor
  let priority: TaskPriority?
  /// Whether the task needs a thread that another caller may block while it waits for the task.
  let mayCloseCircle: Bool
}

/// The rest of a run that outlived its call.
@usableFromInline
@frozen
struct RunTask: Sendable {
  let number: Int
  let needs: TaskNeeds
  /// The task, once it was made.
  var task: Task<Void, Never>?
  var isCancelled = false

  /// Marks the task as cancelled; the caller cancels the result.
  mutating func cancel() -> Task<Void, Never>? {
    isCancelled = true
    return task
  }
}
