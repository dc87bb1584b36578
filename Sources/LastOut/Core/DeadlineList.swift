// Settle
// SPDX-License-Identifier: Apache-2.0

/// The ends of the two intrusive lists that one distinct duration has.
///
/// Time only moves forward, so whatever is appended at the tail has the latest deadline: both lists
/// are sorted without ever comparing two slots.
@usableFromInline
struct DeadlineList {
  /// The duration in nanoseconds.
  @usableFromInline let span: UInt64
  /// The shortest time between runs of the slots in `quiet`, in nanoseconds; zero for none.
  ///
  /// Slots with different intervals never share a list, so a slot that stays in its list keeps its
  /// interval.
  @usableFromInline let interval: UInt64
  /// Slots that leave `span` after their last change, oldest change first.
  @usableFromInline var quiet = SlotList()
  /// Slots that leave `span` after their base at the latest, oldest base first.
  ///
  /// A slot stays in it while its burst is open, pending or not.
  @usableFromInline var base = SlotList()

  @inlinable
  init(span: UInt64, interval: UInt64) {
    self.span = span
    self.interval = interval
  }

  /// How many distinct durations get lists; further ones share the heap.
  @inlinable static var limit: Int { 16 }
}

/// The two ends of an intrusive list of slots; -1 for an empty one.
@usableFromInline
struct SlotList {
  @usableFromInline var head: Int32 = -1
  @usableFromInline var tail: Int32 = -1

  @inlinable init() {}
}
