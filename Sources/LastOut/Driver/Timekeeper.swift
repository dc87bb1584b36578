// Settle
// SPDX-License-Identifier: Apache-2.0

/// The time that an engine lives by.
@usableFromInline
package protocol Timekeeper: AnyObject, Sendable {
  /// The current moment; it never goes back.
  var now: Moment { get }

  /// Names the engine to serve, which is not kept alive; called once, before anything else.
  func attach(_ engine: any ServedEngine)

  /// Has ``ServedEngine/service()`` called at `deadline` at the latest.
  func wake(at deadline: Moment)

  /// The engine is gone: nothing will be served any more.
  func stop()
}

/// A clock that makes the timekeepers of the engines that live by it, as a test clock does.
package protocol EngineClock: Clock {
  func makeTimekeeper() -> any Timekeeper
}

extension Clock where Duration == Swift.Duration {
  /// A timekeeper for one engine that lives by this clock.
  ///
  /// The machine's own monotonic clock is served by the shared driver, any other one by tasks that
  /// sleep.
  @usableFromInline
  func timekeeper() -> any Timekeeper {
    if self is SuspendingClock { return DriverSeat(.queues) }
    if let clock = self as? any EngineClock { return clock.makeTimekeeper() }
    return ClockTimekeeper(clock: self)
  }
}

extension Clock where Duration == Swift.Duration {
  /// Where the values of an engine run that lives by this clock, unless its owner says.
  @usableFromInline var defaultPlace: TaskPlace {
    self is any EngineClock ? .here(exact: true) : LastOutExecutor.threads.place
  }
}
