// Settle
// SPDX-License-Identifier: Apache-2.0

/// The phase of a slot, which determines the list that the slot is in.
@usableFromInline
@frozen
enum Phase: UInt8 {
  /// In the free list; no key owns the slot.
  case free
  /// Nothing is pending and the key is running; in no list.
  case running
  /// Nothing is pending or running, but the burst may still be open; in the lingering list.
  case lingering
  /// Pending until a deadline; in the quiet list of its delay.
  case quiet
  /// Pending until a deadline that is in no list; in the heap.
  case heaped
  /// Pending and due; in the ready list.
  case ready
  /// Pending and due, but the key is running; in no list until the run ends.
  case blocked
}

/// The state of an active key: one whose burst is open, whose value is pending or whose task runs.
///
/// The order of the fields packs a slot with a pointer-sized value into 48 bytes. Fields that only
/// some slots need are in ``SlotExtras``.
@usableFromInline
@frozen
struct Slot<Value> {
  /// The pending value.
  @usableFromInline var value: Value?
  @usableFromInline var phase = Phase.free
  /// The list whose `maxWait` list this slot is linked into; -1 for none.
  @usableFromInline var maxWaitList: Int8 = -1
  /// The list whose `quiet` list this slot is linked into while its phase is `quiet`.
  @usableFromInline var quietList: Int8 = -1
  /// Whether a run of the key has not ended yet.
  @usableFromInline var isRunning = false
  /// Whether the value skips the quiet period: it leads, or was flushed while its key ran.
  @usableFromInline var isUrgent = false
  /// Whether the burst was opened and neither cancelled nor reclaimed; it may have ended.
  @usableFromInline var isOpen = false
  /// Whether the last change's delay is zero: such a burst lasts for its instant.
  @usableFromInline var isInstant = false
  /// The neighbours in the list of `phase`; `previous` is the position in the heap.
  @usableFromInline var next: Int32 = -1
  @usableFromInline var previous: Int32 = -1
  /// The key that owns the slot.
  @usableFromInline var key: Int32 = -1
  /// The number of changes replaced since the last run or cancel.
  @usableFromInline var collapsed: UInt32 = 0
  /// When the burst ends: the last change plus its delay.
  @usableFromInline var quietEnd: UInt64 = 0
  /// When `maxWait` starts: with the burst, or with the last run in it.
  @usableFromInline var waitStart: UInt64 = 0

  @inlinable init() {}

  /// Makes `newest` the pending value; returns the one it replaces.
  @inlinable
  mutating func exchange(_ newest: consuming Value) -> Value? {
    var replaced: Value? = consume newest
    swap(&value, &replaced)
    return replaced
  }

  /// Lets `update` change the value in place; `false` if there is none or `update` declines.
  @inlinable
  @inline(__always)
  mutating func update(_ update: (inout Value) -> Bool) -> Bool {
    // Taking the value copies nothing.
    guard var current = value.take() else { return false }
    defer { value = current }
    return update(&current)
  }

  @inlinable var isPending: Bool { phase.rawValue >= Phase.quiet.rawValue }

  /// Whether a change at `now` would open a new burst.
  @inlinable
  func hasEnded(at now: UInt64) -> Bool {
    !isOpen || quietEnd < now || (quietEnd == now && !isInstant)
  }
}

/// Fields for slots whose key has a `maxWait`, leads, is in the heap, or is flushed while it runs.
@usableFromInline
@frozen
struct SlotExtras {
  /// The neighbours in a `maxWait` list.
  @usableFromInline var next: Int32 = -1
  @usableFromInline var previous: Int32 = -1
  /// When the pending value is due, unless the phase is `quiet`.
  @usableFromInline var due: UInt64 = 0

  @inlinable init() {}
}

/// The start of a slot's last run and the end of its interval.
@usableFromInline
@frozen
struct Spacing {
  @usableFromInline var start: UInt64
  @usableFromInline var end: UInt64

  @inlinable
  init(start: UInt64 = 0, end: UInt64 = 0) {
    self.start = start
    self.end = end
  }
}
