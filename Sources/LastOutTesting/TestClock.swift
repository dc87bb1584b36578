// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// A clock that stands still until it is told to move.
///
/// Queues, delayed tasks, watchdogs and debounce functions that were made with it run their tasks
/// on the thread that moves the clock, each at its exact time and one after the other. Values that
/// lead a burst run on the thread that enqueues them.
public final class TestClock: Sendable {
  private let hands = ClockHands()
  /// Serves what is no queue.
  private let engine: QueueEngine

  /// Creates a clock that shows zero.
  public init() {
    engine = QueueEngine(policy: .standard, time: TestTimekeeper(hands)) { _, _ in }
  }

  /// The time since the clock was made.
  public var now: Duration { Moment.zero.duration(to: hands.now) }

  /// Moves the clock forward and runs on the way what becomes due.
  ///
  /// - Parameter duration: Zero runs what is due already; negative is a mistake and traps.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "A clock cannot go back by \(duration).")
    hands.advance(to: hands.now.advanced(by: duration))
  }

  /// Moves the clock to a time since it was made, and runs on the way what becomes due.
  ///
  /// - Parameter time: Not before ``now``; that is a mistake and traps.
  public func advance(to time: Duration) {
    precondition(time >= now, "A clock that shows \(now) cannot go back to \(time).")
    hands.advance(to: Moment.zero.advanced(by: time))
  }

  /// How long until something happens; `nil` while nothing waits for time.
  public var nextDeadline: Duration? {
    hands.next.map { Moment.zero.duration(to: $0.deadline) }
  }

  // MARK: What lives by this clock

  /// Makes a queue that lives by this clock.
  public func queue(
    policy: Policy = .standard,
    onError: @escaping @Sendable (_ key: String, _ error: any Error) -> Void = { _, _ in }
  ) -> LastOutQueue {
    LastOutQueue(policy: policy, time: TestTimekeeper(hands), onError: onError)
  }

  /// Makes a delayed task that lives by this clock.
  @discardableResult
  public func delayedTask(
    after delay: Duration,
    task: @escaping @Sendable () -> Void
  ) -> DelayedTask {
    DelayedTask(after: delay, engine: engine, task: task)
  }

  /// Makes a watchdog that lives by this clock.
  public func watchdog(
    _ name: String,
    timeout: Duration,
    repeats: Bool = false,
    handler: @escaping @Sendable (_ name: String, _ elapsed: Duration) -> Void
  ) -> Watchdog {
    Watchdog(name, timeout: timeout, repeats: repeats, engine: engine, handler: handler)
  }

  /// Makes a debounce function that lives by this clock.
  public func debounce(
    delay: Duration
  ) -> @Sendable (_ task: @escaping @Sendable () -> Void) -> Void {
    LastOut.debounce(delay: delay, engine: engine)
  }
}
