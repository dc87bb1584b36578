// Settle
// SPDX-License-Identifier: Apache-2.0

/// A first-in, first-out queue, which gives much memory back when it is empty.
///
/// Every operation takes constant time on average, except ``prepend(_:)`` when nothing has been
/// removed from the front, which moves every element.
package struct Deque<Element> {
  private var elements: [Element] = []
  /// How many elements at the front have been removed.
  private var removed = 0

  package init() {}

  package var count: Int { elements.count - removed }
  package var isEmpty: Bool { removed == elements.count }
  /// All elements, the first one first.
  package var all: ArraySlice<Element> { elements[removed...] }
  package var first: Element? { isEmpty ? nil : elements[removed] }
  package var last: Element? { isEmpty ? nil : elements.last }

  package mutating func append(_ element: Element) { elements.append(element) }

  package mutating func prepend(_ element: Element) {
    if removed > 0 {
      removed -= 1
      elements[removed] = element
    } else {
      elements.insert(element, at: 0)
    }
  }

  package mutating func replaceFirst(_ element: Element) { elements[removed] = element }

  package mutating func replaceLast(_ element: Element) { elements[elements.count - 1] = element }

  package mutating func popFirst() -> Element? {
    guard let first else { return nil }
    removeFirst(1)
    return first
  }

  /// Removes the first `count` elements, which must exist.
  package mutating func removeFirst(_ count: Int) {
    removed += count
    if removed == elements.count {
      elements.removeAll(keepingCapacity: removed <= 1024)
      removed = 0
    } else if removed * 2 >= elements.count {
      elements.removeFirst(removed)
      removed = 0
    }
  }

  /// Replaces each element by what `change` returns for it, and removes it if that is `nil`.
  package mutating func update(_ change: (Element) -> Element?) {
    elements = elements[removed...].compactMap(change)
    removed = 0
  }

  /// Removes all elements that match, in linear time.
  package mutating func removeAll(where matches: (Element) -> Bool) {
    elements.removeFirst(removed)
    removed = 0
    elements.removeAll(where: matches)
  }

  package mutating func removeAll() {
    elements = []
    removed = 0
  }
}

extension Deque: Sendable where Element: Sendable {}
