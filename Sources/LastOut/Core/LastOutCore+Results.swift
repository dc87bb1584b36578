// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// A value that leaves the queue now.
  ///
  /// Its key counts as running until ``LastOutCore/finish(_:at:)``.
  @usableFromInline
  package struct Run {
    /// Whose value it is.
    @usableFromInline
    package let key: KeyIndex
    /// The newest value of the key.
    @usableFromInline
    package let value: Value
    /// Changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int
    /// When the value was due; the time since then is the lateness.
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

  /// What waits for a key.
  @usableFromInline
  package struct Pending {
    /// The newest value.
    @usableFromInline
    package let value: Value
    /// Changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int
    /// When it leaves if nothing else happens.
    @usableFromInline
    package let due: Moment
    /// Due already, and waiting for the key's current run to end.
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

  /// What a cancel met.
  @usableFromInline
  package enum CancelResult {
    /// The pending value was dropped.
    ///
    /// It is handed back, so that the caller decides where it is freed.
    case cancelled(Value, collapsed: Int)
    /// Nothing is pending, and the key is running: too late.
    case alreadyStarted
    /// Nothing is pending and nothing runs.
    case nothing
  }

  /// A value that was dropped by ``LastOutCore/cancelAll()``.
  @usableFromInline
  package struct Cancelled {
    /// Whose value it was.
    @usableFromInline
    package let key: KeyIndex
    /// The dropped value, handed back so that the caller decides where it is freed.
    @usableFromInline
    package let value: Value
    /// Changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int

    @inlinable
    init(key: KeyIndex, value: Value, collapsed: Int) {
      self.key = key
      self.value = value
      self.collapsed = collapsed
    }
  }

  /// What a flush met.
  @usableFromInline
  package enum FlushResult {
    /// The pending value leaves now.
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
