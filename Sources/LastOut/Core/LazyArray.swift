// Settle
// SPDX-License-Identifier: Apache-2.0

/// An array of equal elements, of which a page gets memory of its own with its first write.
///
/// Pages that were never written are one page, so that a key or a device that is never used costs a
/// quarter of a byte. Access takes constant time, and costs one load more than that of an array.
/// Like ``Buffer``, it checks no index in optimised builds: every index comes from the core itself.
@usableFromInline
@frozen
@safe package struct LazyArray<Element> {
  /// How many elements a page has, as a power of two.
  @inlinable static var shift: Int { 5 }
  @inlinable static var mask: Int { 31 }

  @usableFromInline var memory: LazyPages<Element>
  /// The pages of ``memory``, at hand.
  @usableFromInline var pages: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
  /// The number of elements.
  @usableFromInline package private(set) var count = 0

  /// Creates an array of equal elements.
  @usableFromInline
  package init(repeating element: Element, count: Int) {
    memory = LazyPages(element, size: 1 << Self.shift)
    unsafe pages = memory.pages
    extend(to: count)
  }

  /// Grows to `count` elements.
  @usableFromInline
  package mutating func extend(to count: Int) {
    guard count > self.count else { return }
    if !isKnownUniquelyReferenced(&memory) { memory = LazyPages(copying: memory) }
    memory.extend(toPages: (count + Self.mask) >> Self.shift)
    unsafe pages = memory.pages
    self.count = count
  }

  /// Removes the last elements, `count` of them, and frees pages that have none any more.
  @usableFromInline
  package mutating func removeLast(_ count: Int) {
    self.count -= count
    if !isKnownUniquelyReferenced(&memory) { memory = LazyPages(copying: memory) }
    unsafe pages = memory.pages
    memory.shrink(toPages: (self.count + Self.mask) >> Self.shift)
  }

  /// The element at `place`; the array must have one.
  @inlinable
  package subscript(place: Int) -> Element {
    @inline(__always) unsafeAddress {
      assert(place >= 0 && place < count, "Element \(place) of \(count)")
      return unsafe UnsafePointer(pages[place >> Self.shift] + (place & Self.mask))
    }
    @inline(__always) unsafeMutableAddress {
      assert(place >= 0 && place < count, "Element \(place) of \(count)")
      let number = place >> Self.shift
      if !isKnownUniquelyReferenced(&memory) || (unsafe pages[number] == memory.standard) {
        prepare(page: number)
      }
      return unsafe pages[number] + (place & Self.mask)
    }
  }

  /// The element of a key; the array must have one.
  @inlinable
  package subscript(key: KeyIndex) -> Element {
    @inline(__always) unsafeAddress {
      let place = Int(key.rawValue)
      assert(place >= 0 && place < count, "Element \(place) of \(count)")
      return unsafe UnsafePointer(pages[place >> Self.shift] + (place & Self.mask))
    }
    @inline(__always) unsafeMutableAddress {
      let place = Int(key.rawValue)
      assert(place >= 0 && place < count, "Element \(place) of \(count)")
      let number = place >> Self.shift
      if !isKnownUniquelyReferenced(&memory) || (unsafe pages[number] == memory.standard) {
        prepare(page: number)
      }
      return unsafe pages[number] + (place & Self.mask)
    }
  }

  /// Gives a page memory of its own, which no copy of the array has.
  @usableFromInline
  @inline(never)
  mutating func prepare(page: Int) {
    if !isKnownUniquelyReferenced(&memory) {
      memory = LazyPages(copying: memory)
      unsafe pages = memory.pages
    }
    memory.own(page)
  }

  /// The places, in order.
  @inlinable package var indices: Range<Int> { 0..<count }

  /// How many pages have memory of their own.
  package var ownPageCount: Int { memory.ownCount }
}

extension LazyArray: @unchecked Sendable where Element: Sendable {}

/// The memory of a ``LazyArray``.
@usableFromInline
@safe final class LazyPages<Element> {
  /// The page of elements that were never written.
  @usableFromInline let standard: UnsafeMutablePointer<Element>
  @usableFromInline private(set) var pages: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
  private let size: Int
  private var count = 0
  private var capacity = 1
  private(set) var ownCount = 0

  init(_ element: Element, size: Int) {
    self.size = size
    unsafe standard = .allocate(capacity: size)
    unsafe standard.initialize(repeating: element, count: size)
    unsafe pages = .allocate(capacity: capacity)
  }

  init(copying other: LazyPages) {
    size = other.size
    unsafe standard = .allocate(capacity: size)
    unsafe standard.initialize(from: other.standard, count: size)
    capacity = max(other.count, 1)
    unsafe pages = .allocate(capacity: capacity)
    extend(toPages: other.count)
    for page in 0..<count where unsafe other.pages[page] != other.standard {
      unsafe replace(page, byCopyOf: other.pages[page])
    }
  }

  deinit {
    shrink(toPages: 0)
    unsafe standard.deinitialize(count: size)
    unsafe standard.deallocate()
    unsafe pages.deallocate()
  }

  func extend(toPages wanted: Int) {
    if wanted > capacity {
      capacity = max(wanted, 2 * capacity)
      let larger = UnsafeMutablePointer<UnsafeMutablePointer<Element>>.allocate(capacity: capacity)
      unsafe larger.moveInitialize(from: pages, count: count)
      unsafe pages.deallocate()
      unsafe pages = larger
    }
    while count < wanted {
      unsafe (pages + count).initialize(to: standard)
      count += 1
    }
  }

  func shrink(toPages wanted: Int) {
    while count > wanted {
      count -= 1
      guard unsafe pages[count] != standard else { continue }
      unsafe pages[count].deinitialize(count: size)
      unsafe pages[count].deallocate()
      ownCount -= 1
    }
  }

  /// Gives a page memory of its own, unless it has some.
  func own(_ page: Int) {
    if unsafe pages[page] == standard { unsafe replace(page, byCopyOf: standard) }
  }

  private func replace(_ page: Int, byCopyOf source: UnsafeMutablePointer<Element>) {
    let own = UnsafeMutablePointer<Element>.allocate(capacity: size)
    unsafe own.initialize(from: source, count: size)
    unsafe pages[page] = own
    ownCount += 1
  }
}

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
