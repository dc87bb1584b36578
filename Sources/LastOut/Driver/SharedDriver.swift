// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread that waits for the next deadline of many engines.
///
/// It starts with the first deadline, and blocks while nothing is due. It never runs tasks itself:
/// other threads run them.
final class SharedDriver: Sendable {
  private struct State: ~Copyable {
    var engines: [Int: WeakEngine] = [:]
    var timers = TimerHeap()
    var newest = 0
    var hasThread = false
  }

  private struct WeakEngine {
    weak var engine: (any ServedEngine)?
  }

  /// Serves queues, delayed tasks and debounced functions.
  static let queues = SharedDriver()
  /// Serves only watchdogs.
  static let watchdogs = SharedDriver()

  private let state = Monitor(State())

  /// Registers an engine without retaining it, and returns its number.
  func register(_ engine: any ServedEngine) -> Int {
    state.withLock { state in
      state.newest += 1
      state.engines[state.newest] = WeakEngine(engine: engine)
      return state.newest
    }
  }

  func unregister(_ number: Int) {
    state.withLock { state in
      state.engines[number] = nil
      state.timers.remove(number)
    }
  }

  func wake(_ number: Int, at deadline: Moment) {
    let (isFirst, needsThread) = state.withLock { state in
      let isFirst = state.timers.advance(number, to: deadline.nanoseconds)
      defer { state.hasThread = true }
      return (isFirst, !state.hasThread)
    }
    if needsThread {
      startThread()
    } else if isFirst {
      state.signal()
    }
  }

  // MARK: The thread

  private func startThread() {
    let failure = Thread.start(priority: .high) { [self] in serve() }
    guard failure != 0 else { return }
    StandardError.write("no thread for timers (error \(failure)), trying again")
    Task.detached { [self] in
      try? await Task.sleep(for: .milliseconds(100))
      startThread()
    }
  }

  private func serve() {
    Thread.sharpenTimer()
    while true {
      let (number, engine) = state.wait { state -> WaitStep<(Int, (any ServedEngine)?)> in
        guard let next = state.timers.first else { return .wait(until: nil) }
        guard next.deadline <= MonotonicTime.now.nanoseconds else {
          return .wait(until: Moment(nanoseconds: next.deadline))
        }
        state.timers.remove(next.number)
        return .done((next.number, state.engines[next.number]?.engine))
      }
      guard let next = engine?.service() else { continue }
      state.withLock { _ = $0.timers.advance(number, to: next.nanoseconds) }
    }
  }
}

/// One engine's registration with a shared driver.
final class DriverSeat: Timekeeper {
  private let driver: SharedDriver
  private let number = Locked(0)

  init(_ driver: SharedDriver) {
    self.driver = driver
  }

  var now: Moment { MonotonicTime.now }

  func attach(_ engine: any ServedEngine) {
    let assigned = driver.register(engine)
    number.withLock { $0 = assigned }
  }

  func wake(at deadline: Moment) {
    driver.wake(number.withLock { $0 }, at: deadline)
  }

  func stop() {
    driver.unregister(number.withLock { $0 })
  }
}
