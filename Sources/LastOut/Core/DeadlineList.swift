// Settle
// SPDX-License-Identifier: Apache-2.0

/// The ends of the two intrusive lists of one distinct duration.
///
/// Time only moves forward, so a slot that is appended has the latest deadline: both lists are
/// sorted without comparing slots.
@usableFromInline
@frozen
struct DeadlineList {
  /// The duration in nanoseconds.
  @usableFromInline let span: UInt64
  /// The shortest time between runs of the slots in `quiet`, in nanoseconds; zero for none.
  ///
  /// Slots with different intervals never share a list, so a slot that stays in its list keeps its
  /// interval.
  @usableFromInline let interval: UInt64
  /// Slots that are due `span` after their last change, oldest change first.
  @usableFromInline var quiet = SlotList()
  /// Slots that are due at most `span` after their wait started, longest wait first.
  ///
  /// A slot stays in the list while its burst is open, pending or not.
  @usableFromInline var maxWait = SlotList()

  @inlinable
  init(span: UInt64, interval: UInt64) {
    self.span = span
    self.interval = interval
  }
}

/// The two ends of an intrusive list of slots; -1 for an empty one.
@usableFromInline
@frozen
struct SlotList {
  @usableFromInline var head: Int32 = -1
  @usableFromInline var tail: Int32 = -1

  @inlinable init() {}
}

/// The lists of the first distinct durations, by number.
@usableFromInline
@frozen
struct DeadlineLists: ~Copyable {
  @usableFromInline var lists = Buffer<DeadlineList>(capacity: 2)

  /// The maximum number of distinct durations with lists; others share the heap.
  @inlinable static var limit: Int { 16 }

  @inlinable init() {}

  @inlinable var count: Int { lists.count }

  @inlinable
  subscript(number: Int) -> DeadlineList {
    unsafeAddress { unsafe UnsafePointer(lists.address(of: number)) }
    unsafeMutableAddress { unsafe lists.address(of: number) }
  }

  @inlinable
  subscript(number: Int8) -> DeadlineList {
    unsafeAddress { unsafe UnsafePointer(lists.address(of: Int(number))) }
    unsafeMutableAddress { unsafe lists.address(of: Int(number)) }
  }

  /// The list for a duration; -1 if there is none.
  @inlinable
  func number(for span: UInt64, interval: UInt64) -> Int8 {
    for number in 0..<count
    where self[number].span == span && self[number].interval == interval {
      return Int8(number)
    }
    return -1
  }

  /// The list for a duration, which is added if there is room; otherwise -1.
  @usableFromInline
  mutating func add(_ span: UInt64, interval: UInt64) -> Int8 {
    let known = number(for: span, interval: interval)
    guard known < 0, lists.count < Self.limit else { return known }
    lists.append(DeadlineList(span: span, interval: interval))
    return Int8(count - 1)
  }
}
