// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// A clock that only moves when a test advances it.
///
/// Queues, delayed tasks, watchdogs and debounced functions on this clock run their tasks on the
/// thread that advances it, each at its exact time and one after the other. Values that lead a
/// burst run on the thread that enqueues them. Any code that sleeps on a `Clock` can use this one.
public final class LastOutTestClock: Clock, Sendable {
  /// The unit of the clock's instants.
  public typealias Duration = Swift.Duration

  /// A time since the creation of the clock.
  public struct Instant: InstantProtocol, CustomStringConvertible {
    /// The time since the creation of the clock.
    public var offset: Duration

    /// Creates an instant.
    public init(_ offset: Duration) {
      self.offset = offset
    }

    /// The instant `duration` later.
    public func advanced(by duration: Duration) -> Instant { Instant(offset + duration) }

    /// The time from this instant to `other`.
    public func duration(to other: Instant) -> Duration { other.offset - offset }

    /// Whether `left` is earlier than `right`.
    public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }

    /// The offset as text.
    public var description: String { offset.description }
  }

  let hands = ClockHands()
  private let sleeping = Sleepers()

  /// Creates a clock at time zero.
  public init() {}

  /// The current time.
  public var now: Instant { Instant(elapsed) }

  /// The time since the creation of the clock.
  public var elapsed: Duration { Moment.zero.duration(to: hands.now) }

  /// The smallest step of the clock.
  public var minimumResolution: Duration { .nanoseconds(1) }

  // MARK: Moving

  /// Moves the clock forward and runs everything that becomes due.
  ///
  /// - Parameter duration: How far to move; zero runs what is already due, and a negative duration
  ///   traps.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "A clock cannot go back by \(duration).")
    hands.advance(to: hands.now.advanced(by: duration))
  }

  /// Moves the clock to a time since its creation, and runs everything that becomes due.
  ///
  /// - Parameter time: The new time; a time before ``elapsed`` traps.
  public func advance(to time: Duration) {
    precondition(time >= elapsed, "A clock that shows \(elapsed) cannot go back to \(time).")
    hands.advance(to: Moment.zero.advanced(by: time))
  }

  /// The next deadline, as a time since the creation of the clock; `nil` if there is none.
  public var nextDeadline: Duration? {
    hands.next.map { Moment.zero.duration(to: $0) }
  }

  // MARK: Sleeping

  /// Suspends the task until the clock is moved to `deadline`.
  ///
  /// - Throws: `CancellationError` when the task is cancelled first.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    guard deadline.offset > elapsed else { return }
    let sleeper = sleeping.add()
    let moment = Moment.zero.advanced(by: deadline.offset)
    let timer = hands.schedule(at: moment) { sleeper.wake() }
    defer {
      hands.unschedule(timer)
      sleeping.remove(sleeper)
    }
    try await sleeper.sleep()
  }

  /// Suspends the task until `count` other tasks sleep on this clock.
  public func sleepers(_ count: Int = 1) async {
    await sleeping.wait(for: count)
  }
}

extension LastOutTestClock: EngineClock {
  package func makeTimekeeper() -> any Timekeeper { TestTimekeeper(hands, sleeping: sleeping) }
}

/// One engine's view of the virtual time.
final class TestTimekeeper: Timekeeper {
  private let hands: ClockHands
  private let sleeping: Sleepers

  init(_ hands: ClockHands, sleeping: Sleepers) {
    self.hands = hands
    self.sleeping = sleeping
  }

  var sleeps: Int { sleeping.total }

  var now: Moment { hands.now }

  func attach(_ engine: any ServedEngine) { hands.attach(engine) }

  func wake(at deadline: Moment) {}

  func stop() {}
}

/// Shorthand for initializers with a clock.
extension LastOutTestClock {
  /// Creates a queue on this clock; errors of its tasks are ignored by default.
  public func queue(
    policy: Policy = .standard,
    onError: @escaping @Sendable (_ key: String, _ error: any Error) -> Void = { _, _ in }
  ) -> LastOutQueue {
    LastOutQueue(policy: policy, clock: self, onError: onError)
  }

  /// Creates a delayed task on this clock.
  @discardableResult
  public func delayedTask(
    after delay: Duration,
    task: @escaping @Sendable () -> Void
  ) -> DelayedTask {
    DelayedTask(after: delay, clock: self, task: task)
  }

  /// Creates a watchdog on this clock.
  public func watchdog(
    _ name: String,
    timeout: Duration,
    repeats: Bool = false,
    handler: @escaping @Sendable (_ name: String, _ elapsed: Duration) -> Void
  ) -> Watchdog {
    Watchdog(name, timeout: timeout, repeats: repeats, clock: self, handler: handler)
  }

  /// Creates a debounced function on this clock.
  public func debounce(delay: Duration) -> Debounce {
    Debounce(policy: Policy(delay: delay), clock: self)
  }
}

/// The virtual time, its engines and its timers.
final class ClockHands: Sendable {
  /// A one-shot timer.
  struct Timer: Sendable {
    let number: Int
    let deadline: Moment
    let action: @Sendable () -> Void
  }

  private struct Weak {
    weak var engine: (any ServedEngine)?
  }

  private struct State: ~Copyable {
    var now = Moment.zero
    var engines: [Weak] = []
    /// The timers in order of their deadlines, then of their creation.
    var timers: [Timer] = []
    var newest = 0
  }

  /// The next timer or engine; timers precede engines.
  private enum Turn {
    case timer(Timer)
    case engine(any ServedEngine, Moment)

    var deadline: Moment {
      switch self {
      case .timer(let timer): timer.deadline
      case .engine(_, let deadline): deadline
      }
    }
  }

  private let state = Locked(State())

  var now: Moment { state.withLock { $0.now } }

  /// The next deadline; `nil` if there is none.
  var next: Moment? { turn?.deadline }

  func attach(_ engine: any ServedEngine) {
    state.withLock { state in
      state.engines.removeAll { $0.engine == nil }
      state.engines.append(Weak(engine: engine))
    }
  }

  /// Calls `action` when the clock reaches `deadline`; returns the number of the timer.
  func schedule(at deadline: Moment, _ action: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.newest += 1
      let place = state.timers.firstIndex { $0.deadline > deadline } ?? state.timers.count
      let timer = Timer(number: state.newest, deadline: deadline, action: action)
      state.timers.insert(timer, at: place)
      return state.newest
    }
  }

  func unschedule(_ number: Int) {
    let removed = state.withLock { state -> Timer? in
      let place = state.timers.firstIndex { $0.number == number }
      return place.map { state.timers.remove(at: $0) }
    }
    withExtendedLifetime(removed) {}
  }

  func advance(to end: Moment) {
    while let turn, turn.deadline <= end {
      move(to: turn.deadline)
      switch turn {
      case .timer(let timer):
        unschedule(timer.number)
        timer.action()
      case .engine(let engine, _): _ = engine.service()
      }
    }
    move(to: end)
  }

  private var turn: Turn? {
    // Engines are released outside the lock, because this may end one.
    let (engines, timer) = state.withLock { ($0.engines.map(\.engine), $0.timers.first) }
    var first = timer.map { Turn.timer($0) }
    for case let engine? in engines {
      guard let deadline = engine.nextDeadline else { continue }
      if let first, first.deadline <= deadline { continue }
      first = .engine(engine, deadline)
    }
    return first
  }

  private func move(to moment: Moment) {
    state.withLock { $0.now = max($0.now, moment) }
  }
}

/// The tasks that sleep on a clock, and those that wait for them to sleep.
final class Sleepers: Sendable {
  private struct Watcher {
    let count: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State: ~Copyable {
    var count = 0
    /// How often a task has fallen asleep.
    var total = 0
    var watchers: [Watcher] = []
  }

  private let state = Locked(State())

  var total: Int { state.withLock { $0.total } }

  func add() -> Sleeper { Sleeper { [self] in change(by: 1) } }

  func remove(_ sleeper: Sleeper) {
    if sleeper.hasSlept { change(by: -1) }
  }

  func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      let isEnough = state.withLock { state in
        if state.count < count {
          state.watchers.append(Watcher(count: count, continuation: continuation))
        }
        return state.count >= count
      }
      if isEnough { continuation.resume() }
    }
  }

  private func change(by difference: Int) {
    let content = state.withLock { state in
      state.count += difference
      state.total += max(difference, 0)
      let content = state.watchers.filter { $0.count <= state.count }.map(\.continuation)
      state.watchers.removeAll { $0.count <= state.count }
      return content
    }
    for continuation in content { continuation.resume() }
  }
}

/// A sleeping task.
final class Sleeper: Sendable {
  private enum State: Sendable {
    case awake
    case asleep(CheckedContinuation<Void, any Error>)
    case ended(cancelled: Bool)
  }

  private let state = Locked((State.awake, hasSlept: false))
  private let onSleep: @Sendable () -> Void

  init(onSleep: @escaping @Sendable () -> Void) {
    self.onSleep = onSleep
  }

  var hasSlept: Bool { state.withLock { $0.hasSlept } }

  /// Suspends the task until it is woken.
  func sleep() async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let end = state.withLock { state -> Bool? in
          if case .ended(let isCancelled) = state.0 { return isCancelled }
          state = (.asleep(continuation), hasSlept: true)
          return nil
        }
        if let end { Self.resume(continuation, isCancelled: end) } else { onSleep() }
      }
    } onCancel: {
      self.end(isCancelled: true)
    }
  }

  func wake() { end(isCancelled: false) }

  private func end(isCancelled: Bool) {
    let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      let former = state.0
      if case .ended = former { return nil }
      state.0 = .ended(cancelled: isCancelled)
      if case .asleep(let continuation) = former { return continuation }
      return nil
    }
    if let continuation { Self.resume(continuation, isCancelled: isCancelled) }
  }

  private static func resume(
    _ continuation: CheckedContinuation<Void, any Error>,
    isCancelled: Bool
  ) {
    if isCancelled {
      continuation.resume(throwing: CancellationError())
    } else {
      continuation.resume()
    }
  }
}
