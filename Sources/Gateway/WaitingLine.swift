// Settle
// SPDX-License-Identifier: Apache-2.0

/// What waits for its turn, oldest first.
///
/// Every operation takes constant time on average, however much waits, but for
/// ``prepend(_:)`` before everything that was ever taken out.
struct WaitingLine<Element> {
  private var elements: [Element] = []
  /// How many at the front have been taken out.
  private var taken = 0

  init() {}

  var count: Int { elements.count - taken }
  var isEmpty: Bool { taken == elements.count }
  var first: Element? { isEmpty ? nil : elements[taken] }
  var last: Element? { isEmpty ? nil : elements.last }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func prepend(_ element: Element) {
    if taken > 0 {
      taken -= 1
      elements[taken] = element
    } else {
      elements.insert(element, at: 0)
    }
  }

  mutating func replaceFirst(_ element: Element) { elements[taken] = element }

  mutating func replaceLast(_ element: Element) { elements[elements.count - 1] = element }

  mutating func popFirst() -> Element? {
    guard let first else { return nil }
    removeFirst(1)
    return first
  }

  /// Takes out `count`, which must be there.
  mutating func removeFirst(_ count: Int) {
    taken += count
    if taken == elements.count {
      elements.removeAll(keepingCapacity: true)
      taken = 0
    } else if taken * 2 >= elements.count {
      elements.removeFirst(taken)
      taken = 0
    }
  }

  mutating func removeAll() {
    elements = []
    taken = 0
  }
}
