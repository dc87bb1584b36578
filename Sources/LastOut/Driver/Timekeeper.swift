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
