// Settle
// SPDX-License-Identifier: Apache-2.0

/// The last-out queue as a value: changes and the time go in, runs come out.
///
/// Drive it like this: after any call look at ``nextDeadline``; at that moment call
/// ``nextRun(at:)`` until it returns `nil`; when a run has ended, call ``finish(_:at:)``.
public struct LastOutCore<Value>: ~Copyable {
  /// A value that leaves the queue now. Its key counts as running until ``LastOutCore/finish(_:at:)``.
  public struct Run {
    public let key: KeyIndex
    public let value: Value
    /// Changes replaced since the key's last run or cancel.
    public let collapsed: Int
    /// When the value was due; `now` minus this is the lateness.
    public let due: Moment
  }

  /// What waits for a key.
  public struct Pending {
    public let value: Value
    public let collapsed: Int
    /// When it leaves if nothing else happens.
    public let due: Moment
    /// Due already, and waiting for the key's current run to end.
    public let isMarkedDue: Bool
  }

  public enum CancelResult {
    /// The pending value was dropped and is handed back, so that the caller decides where it is freed.
    case cancelled(Value, collapsed: Int)
    /// Nothing is pending, and the key is running: too late.
    case alreadyStarted
    /// Nothing is pending and nothing runs.
    case nothing
  }

  public enum FlushResult {
    case run(Run)
    /// The key is running: its pending value follows at ``LastOutCore/finish(_:at:)``.
    case markedDue
    case nothing
  }

  public init(policy: Policy = .standard, capacity: Int = 64) { fatalError("skeleton") }

  /// Sets how `key` settles, from its next change on. Keys never mentioned follow the default policy.
  public mutating func setPolicy(_ policy: Policy, for key: KeyIndex) { fatalError("skeleton") }

  /// Makes `value` the pending value of `key`; returns the value it replaced.
  ///
  /// `delay` overrides the policy's quiet period for this change.
  @discardableResult
  public mutating func enqueue(
    _ value: consuming Value, for key: KeyIndex, at now: Moment, delay: Duration? = nil
  ) -> Value? { fatalError("skeleton") }

  /// Takes the next run that is due at `now`; `nil` when none is.
  public mutating func nextRun(at now: Moment) -> Run? { fatalError("skeleton") }

  /// Says that the run of `key` has ended; what was marked due meanwhile becomes due now.
  public mutating func finish(_ key: KeyIndex, at now: Moment) { fatalError("skeleton") }

  public mutating func cancel(_ key: KeyIndex) -> CancelResult { fatalError("skeleton") }

  /// Takes the pending value of `key` now, whatever its deadline.
  public mutating func flush(_ key: KeyIndex, at now: Moment) -> FlushResult { fatalError("skeleton") }

  /// The earliest moment at which ``nextRun(at:)`` has something; `nil` when nothing waits for time.
  public var nextDeadline: Moment? { fatalError("skeleton") }

  /// How many keys have a pending value.
  public var pendingCount: Int { fatalError("skeleton") }

  public func isRunning(_ key: KeyIndex) -> Bool { fatalError("skeleton") }

  public func pending(_ key: KeyIndex) -> Pending? { fatalError("skeleton") }

  /// The keys with a pending value, in no promised order.
  public func pendingKeys() -> [KeyIndex] { fatalError("skeleton") }
}
