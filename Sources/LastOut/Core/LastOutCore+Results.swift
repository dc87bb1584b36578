// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// A value to run now.
  ///
  /// Its key counts as running until ``LastOutCore/finish(_:at:)``.
  @usableFromInline
  @frozen
  package struct Run {
    /// The key of the value.
    @usableFromInline
    package let key: KeyIndex
    /// The newest value of the key.
    @usableFromInline
    package let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int
    /// When the value was due; the time since then is its lateness.
    @usableFromInline
    package let due: Moment

    @inlinable
    init(key: KeyIndex, value: Value, collapsed: Int, due: Moment) {
      self.key = key
      self.value = value
      self.collapsed = collapsed
      self.due = due
    }
  }

  /// The pending value of a key.
  @usableFromInline
  @frozen
  package struct Pending {
    /// The newest value.
    @usableFromInline
    package let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int
    /// When it is due, unless it changes.
    @usableFromInline
    package let due: Moment
    /// Whether it is due and waits for the end of the key's run.
    @usableFromInline
    package let isMarkedDue: Bool

    @inlinable
    init(value: Value, collapsed: Int, due: Moment, isMarkedDue: Bool) {
      self.value = value
      self.collapsed = collapsed
      self.due = due
      self.isMarkedDue = isMarkedDue
    }
  }

  /// The outcome of a cancel.
  @usableFromInline
  @frozen
  package enum CancelResult {
    /// The pending value was dropped.
    ///
    /// It is returned, so that the caller decides where to free it.
    case cancelled(Value, collapsed: Int)
    /// Nothing is pending, and the key is running.
    case alreadyStarted
    /// Nothing is pending and nothing runs.
    case nothing
  }

  /// A value that ``LastOutCore/cancelAll()`` dropped.
  @usableFromInline
  @frozen
  package struct Cancelled {
    /// The key of the value.
    @usableFromInline
    package let key: KeyIndex
    /// The dropped value, returned so that the caller decides where to free it.
    @usableFromInline
    package let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int

    @inlinable
    init(key: KeyIndex, value: Value, collapsed: Int) {
      self.key = key
      self.value = value
      self.collapsed = collapsed
    }
  }

  /// The outcome of a flush.
  @usableFromInline
  @frozen
  package enum FlushResult {
    /// The pending value runs now.
    case run(Run)
    /// The key is running: its pending value follows at ``LastOutCore/finish(_:at:)``.
    case markedDue
    /// Nothing is pending.
    case nothing
  }
}

extension LastOutCore.Run: Sendable where Value: Sendable {}
extension LastOutCore.Pending: Sendable where Value: Sendable {}
extension LastOutCore.CancelResult: Sendable where Value: Sendable {}
extension LastOutCore.Cancelled: Sendable where Value: Sendable {}
extension LastOutCore.FlushResult: Sendable where Value: Sendable {}
