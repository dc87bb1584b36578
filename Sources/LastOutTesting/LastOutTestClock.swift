// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

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
