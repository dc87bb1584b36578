// Settle
// SPDX-License-Identifier: Apache-2.0

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
