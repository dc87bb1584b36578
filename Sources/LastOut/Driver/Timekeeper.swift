// Settle
// SPDX-License-Identifier: Apache-2.0

/// The clock and timer of an engine.
@usableFromInline
package protocol Timekeeper: AnyObject, Sendable {
  /// The current time; it never goes back.
  var now: Moment { get }

  /// How often a task has slept on the clock; constant where sleeping does not need the caller.
  var sleeps: Int { get }

  /// Sets the engine to serve, without retaining it; called once, before anything else.
  func attach(_ engine: any ServedEngine)

  /// Calls ``ServedEngine/service()`` at `deadline` at the latest.
  func wake(at deadline: Moment)

  /// Stops serving, because the engine is released.
  func stop()
}

extension Timekeeper {
  @usableFromInline package var sleeps: Int { 0 }
}

/// A clock that creates the timekeepers of its engines, as a test clock does.
package protocol EngineClock: Clock {
  func makeTimekeeper() -> any Timekeeper
}

extension Clock where Duration == Swift.Duration {
  /// Creates a timekeeper for one engine on this clock.
  ///
  /// The shared driver serves the machine's monotonic clock; sleeping tasks serve any other clock.
  @usableFromInline
  func timekeeper() -> any Timekeeper {
    if self is SuspendingClock { return DriverSeat(.queues) }
    if let clock = self as? any EngineClock { return clock.makeTimekeeper() }
    return ClockTimekeeper(clock: self)
  }
}

extension Clock where Duration == Swift.Duration {
  /// Where the values of an engine on this clock run by default.
  @usableFromInline var defaultPlace: TaskPlace {
    self is any EngineClock ? .here(exact: true) : LastOutExecutor.threads.place
  }
}

/// Serves one engine on any clock, with a task that sleeps until the next deadline.
final class ClockTimekeeper<C: Clock>: Timekeeper where C.Duration == Duration {
  private struct State: ~Copyable {
    weak var engine: (any ServedEngine)?
    /// When the sleeping task wakes; the maximum while none sleeps.
    var deadline = UInt64.max
    /// The generation of the sleeping task; older tasks are ignored.
    var generation = 0
    var sleeper: Task<Void, Never>?
  }

  private let clock: C
  private let start: C.Instant
  private let state = Locked(State())

  init(clock: C) {
    self.clock = clock
    start = clock.now
  }

  var now: Moment { Moment.zero.advanced(by: start.duration(to: clock.now)) }

  func attach(_ engine: any ServedEngine) {
    state.withLock { $0.engine = engine }
  }

  func wake(at deadline: Moment) {
    let replaced = state.withLock { state -> Task<Void, Never>? in
      guard deadline.nanoseconds < state.deadline else { return nil }
      state.deadline = deadline.nanoseconds
      state.generation += 1
      let generation = state.generation
      let replaced = state.sleeper
      state.sleeper = Task.detached { [clock, start, weak self] in
        let end = start.advanced(by: Moment.zero.duration(to: deadline))
        try? await clock.sleep(until: end, tolerance: nil)
        self?.wokeUp(generation)
      }
      return replaced
    }
    replaced?.cancel()
  }

  func stop() {
    let sleeper = state.withLock { state in
      state.generation += 1
      return state.sleeper.take()
    }
    sleeper?.cancel()
  }

  private func wokeUp(_ generation: Int) {
    let engine = state.withLock { state -> (any ServedEngine)? in
      guard state.generation == generation else { return nil }
      state.deadline = .max
      state.sleeper = nil
      return state.engine
    }
    if let next = engine?.service() { wake(at: next) }
  }
}
