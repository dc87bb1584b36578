// Settle
// SPDX-License-Identifier: Apache-2.0

/// Threads that come when there is work and go when there has been none for a second.
///
/// The pool itself has no ceiling: each engine states how many threads its values may occupy, so
/// that the blocked tasks of one engine never keep another one waiting.
@usableFromInline
package final class ThreadPool: Sendable {
  private struct State: ~Copyable {
    /// Engines that a thread has to visit, the first at `head`.
    var waiting: [any ServedEngine] = []
    var head = 0
    var idle = 0
    var threads = 0
    /// Whether the lack of threads was reported since there was enough.
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

  /// Runs the tasks of queues that ask for nothing else.
  static let standard = ThreadPool(priority: .medium)
  static let high = ThreadPool(priority: .high)
  static let utility = ThreadPool(priority: .low)
  static let background = ThreadPool(priority: .background)
  /// Runs the handlers of watchdogs and nothing else.
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

  /// Has one thread run what `engine` assigned.
  func submit(_ engine: any ServedEngine) {
    let needsThread = state.withLock { state in
      state.waiting.append(engine)
      guard state.idle < state.count else { return false }
      state.threads += 1
      return true
    }
    if needsThread { startThread() } else { state.signal() }
  }

  /// How many threads there are.
  package var threadCount: Int { state.withLock { $0.threads } }

  private func startThread() {
    let failure = Thread.start(priority: priority) { [self] in serve() }
    guard failure != 0 else { return state.withLock { $0.isShort = false } }
    // What waits goes to the threads there are; if there is none, only another try helps.
    let (isNews, isLast) = state.withLock { state in
      state.threads -= 1
      defer { state.isShort = true }
      return (!state.isShort, state.threads == 0)
    }
    if isNews { StandardError.write("no thread for a task (error \(failure)), trying again") }
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

  /// Waits for work; `nil` when there was none for so long that the thread may end.
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
