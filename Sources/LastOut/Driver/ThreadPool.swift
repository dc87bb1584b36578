// Settle
// SPDX-License-Identifier: Apache-2.0

/// Threads that start on demand and end after a second without work.
///
/// The pool has no limit. Each engine limits the threads of its own values, so blocked tasks of one
/// engine never delay another engine.
///
/// One thread starts at a time, and a thread that takes work starts the next one if more waits:
/// where thousands of short tasks are due while new threads do not get a processor, a few threads
/// run them all.
@usableFromInline
package final class ThreadPool: Sendable {
  private struct State: ~Copyable {
    /// Work for a thread.
    var waiting = Deque<any PoolWork>()
    var idle = 0
    var threads = 0
    /// Whether a thread was started that has not asked for work yet.
    var isStarting = false
    /// Whether the current lack of threads was reported.
    var isShort = false

    /// Counts one more thread if there is work without one; `false` if none is needed now.
    mutating func needsThread() -> Bool {
      guard idle < waiting.count, !isStarting else { return false }
      isStarting = true
      threads += 1
      return true
    }
  }

  /// Runs the tasks of queues by default.
  static let standard = ThreadPool(priority: .medium)
  static let high = ThreadPool(priority: .high)
  static let utility = ThreadPool(priority: .low)
  static let background = ThreadPool(priority: .background)
  /// Runs only the handlers of watchdogs.
  static let watchdogs = ThreadPool(priority: .high)

  private static let idleTime = Duration.seconds(1)

  let priority: TaskPriority
  private let state = Monitor(State())

  private init(priority: TaskPriority) {
    self.priority = priority
  }

  static func shared(for priority: TaskPriority) -> ThreadPool {
    switch priority {
    case .high: high
    case .low: utility
    case .background: background
    default: standard
    }
  }

  /// Makes one thread run the assigned work.
  @usableFromInline
  func submit(_ work: any PoolWork) {
    let needsThread = state.withLock { state in
      state.waiting.append(work)
      return state.needsThread()
    }
    if needsThread { startThread() } else { state.signal() }
  }

  private func startThread() {
    let failure = Thread.start(priority: priority) { [self] in serve() }
    guard failure != 0 else { return state.withLock { $0.isShort = false } }
    // Existing threads run the waiting work; without any, the only option is to try again.
    let (mustReport, isLast) = state.withLock { state in
      state.threads -= 1
      state.isStarting = false
      defer { state.isShort = true }
      return (!state.isShort, state.threads == 0)
    }
    if mustReport { StandardError.write("no thread for a task (error \(failure)), trying again") }
    guard isLast else { return }
    Task.detached { [self] in
      try? await Task.sleep(for: .milliseconds(100))
      retry()
    }
  }

  private func retry() {
    let needsThread = state.withLock { state in
      state.threads == 0 && state.needsThread()
    }
    if needsThread { startThread() }
  }

  private func serve() {
    state.withLock { $0.isStarting = false }
    while let (work, needsThread) = nextWork() {
      if needsThread { startThread() }
      work.work()
    }
  }

  /// Waits for work, which may need one more thread; `nil` after the idle time, when the thread
  /// ends.
  private func nextWork() -> (any PoolWork, needsThread: Bool)? {
    var deadline: Moment?
    return state.wait { state in
      if let work = state.waiting.popFirst() {
        if deadline != nil { state.idle -= 1 }
        return .done((work, state.needsThread()))
      }
      let now = MonotonicTime.now
      if let deadline, deadline <= now {
        state.idle -= 1
        state.threads -= 1
        return .done(nil)
      }
      if deadline == nil {
        state.idle += 1
        deadline = now.advanced(by: Self.idleTime)
      }
      return .wait(until: deadline)
    }
  }
}
