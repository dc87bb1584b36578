// Settle
// SPDX-License-Identifier: Apache-2.0

/// Threads that start on demand and end after a second without work.
///
/// The pool has no limit. Each engine limits the threads of its own values, so blocked tasks of one
/// engine never delay another engine.
@usableFromInline
package final class ThreadPool: Sendable {
  private struct State: ~Copyable {
    /// Engines with work for a thread; the first is at `head`.
    var waiting: [any ServedEngine] = []
    var head = 0
    var idle = 0
    var threads = 0
    /// Whether the current lack of threads was reported.
    var isShort = false

    var count: Int { waiting.count - head }

    mutating func next() -> (any ServedEngine)? {
      guard head < waiting.count else { return nil }
      let engine = waiting[head]
      head += 1
      if head == waiting.count {
        waiting.removeAll(keepingCapacity: waiting.count <= 1024)
        head = 0
      }
      return engine
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

  private let priority: TaskPriority
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

  /// Makes one thread run the assigned values of `engine`.
  func submit(_ engine: any ServedEngine) {
    let needsThread = state.withLock { state in
      state.waiting.append(engine)
      guard state.idle < state.count else { return false }
      state.threads += 1
      return true
    }
    if needsThread { startThread() } else { state.signal() }
  }

  /// The number of threads.
  package var threadCount: Int { state.withLock { $0.threads } }

  private func startThread() {
    let failure = Thread.start(priority: priority) { [self] in serve() }
    guard failure != 0 else { return state.withLock { $0.isShort = false } }
    // Existing threads run the waiting work; without any, the only option is to try again.
    let (mustReport, isLast) = state.withLock { state in
      state.threads -= 1
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
      guard state.threads == 0, state.count > 0 else { return false }
      state.threads += 1
      return true
    }
    if needsThread { startThread() }
  }

  private func serve() {
    while let engine = nextEngine() { engine.work() }
  }

  /// Waits for work; `nil` after the idle time, when the thread ends.
  private func nextEngine() -> (any ServedEngine)? {
    var deadline: Moment?
    return state.wait { state in
      if let engine = state.next() {
        if deadline != nil { state.idle -= 1 }
        return .done(engine)
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
