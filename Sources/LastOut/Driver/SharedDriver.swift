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

/// A binary heap with one deadline per number that tracks the position of each number.
struct TimerHeap {
  struct Timer {
    var deadline: UInt64
    var number: Int
  }

  private var timers: [Timer] = []
  private var places: [Int: Int] = [:]

  var first: Timer? { timers.first }

  /// Moves the deadline of `number` forward; returns whether it is now the earliest of all.
  mutating func advance(_ number: Int, to deadline: UInt64) -> Bool {
    if let place = places[number] {
      guard deadline < timers[place].deadline else { return false }
      timers[place].deadline = deadline
      siftUp(place)
    } else {
      timers.append(Timer(deadline: deadline, number: number))
      places[number] = timers.count - 1
      siftUp(timers.count - 1)
    }
    return timers[0].number == number
  }

  mutating func remove(_ number: Int) {
    guard let place = places.removeValue(forKey: number) else { return }
    let last = timers.removeLast()
    guard place < timers.count else { return }
    put(last, at: place)
    siftUp(place)
    siftDown(places[last.number] ?? place)
  }

  private mutating func siftUp(_ start: Int) {
    var place = start
    while place > 0, timers[place].deadline < timers[(place - 1) / 2].deadline {
      exchange(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func siftDown(_ start: Int) {
    var place = start
    while true {
      var child = 2 * place + 1
      guard child < timers.count else { return }
      if child + 1 < timers.count, timers[child + 1].deadline < timers[child].deadline {
        child += 1
      }
      guard timers[child].deadline < timers[place].deadline else { return }
      exchange(place, child)
      place = child
    }
  }

  private mutating func exchange(_ one: Int, _ other: Int) {
    let timer = timers[one]
    put(timers[other], at: one)
    put(timer, at: other)
  }

  private mutating func put(_ timer: Timer, at place: Int) {
    timers[place] = timer
    places[timer.number] = place
  }
}
