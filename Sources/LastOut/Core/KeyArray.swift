// Settle
// SPDX-License-Identifier: Apache-2.0

/// One element for each key, addressed by the key's index.
///
/// An array whose position is a ``KeyIndex`` cannot be confused with one by device or by lane.
@usableFromInline
@frozen
package struct KeyArray<Element> {
  @usableFromInline var elements: [Element]

  /// Creates an array for no key.
  @inlinable
  package init() { elements = [] }

  /// Creates an array of equal elements for the first `count` keys, with room for as many more: no
  /// element is copied until the number of keys has doubled.
  @inlinable
  package init(repeating element: Element, count: Int) {
    elements = []
    elements.reserveCapacity(2 * count)
    elements.append(contentsOf: repeatElement(element, count: count))
  }

  /// Creates an array whose first element belongs to the first key.
  @inlinable
  package init(_ elements: [Element]) { self.elements = elements }

  /// The number of keys.
  @inlinable package var count: Int { elements.count }

  @inlinable package var isEmpty: Bool { elements.isEmpty }

  /// The keys, in order.
  @inlinable
  package var keys: some BidirectionalCollection<KeyIndex> {
    (0..<Int32(elements.count)).lazy.map { KeyIndex($0) }
  }

  /// The element of a key; the array must have one.
  // With `get` instead of `_read` the optimizer loads one field without copying the element.
  @inlinable
  package subscript(key: KeyIndex) -> Element {
    @inline(__always) get { elements[Int(key.rawValue)] }
    @inline(__always) _modify { yield &elements[Int(key.rawValue)] }
  }

  /// Adds the element of the next key.
  @inlinable
  package mutating func append(_ element: Element) { elements.append(element) }

  /// Makes room for `count` keys in all.
  @inlinable
  package mutating func reserveCapacity(_ count: Int) { elements.reserveCapacity(count) }

  /// Removes the elements of the last `count` keys.
  @inlinable
  package mutating func removeLast(_ count: Int) { elements.removeLast(count) }

  /// Grows with copies of `element` to `count` keys; it never shrinks.
  @inlinable
  package mutating func extend(to count: Int, with element: @autoclosure () -> Element) {
    while elements.count < count { elements.append(element()) }
  }

  /// Grows with copies of `element` until it has one for `key`.
  @inlinable
  package mutating func extend(toInclude key: KeyIndex, with element: @autoclosure () -> Element) {
    extend(to: Int(key.rawValue) + 1, with: element())
  }
}

extension KeyArray: Sendable where Element: Sendable {}
