// Settle
// SPDX-License-Identifier: Apache-2.0

/// A growable array behind one pointer: the only place where the core accesses raw memory.
///
/// Unlike `Array` it has no reference count, no uniqueness check, and in optimised builds no bounds
/// check. Every index comes from the core itself.
@usableFromInline
@frozen
@safe struct Buffer<Element>: ~Copyable {
  /// Memory for `capacity` elements, of which the first `count` are initialised.
  @usableFromInline var base: UnsafeMutablePointer<Element>
  @usableFromInline var capacity: Int
  @usableFromInline var count = 0

  @inlinable
  init(capacity: Int) {
    self.capacity = max(capacity, 1)
    unsafe base = Self.memory(for: self.capacity)
  }

  /// Memory that is aligned to a cache line, so that elements of half a line never cross one.
  @inlinable
  static func memory(for capacity: Int) -> UnsafeMutablePointer<Element> {
    let alignment = max(MemoryLayout<Element>.alignment, 64)
    return unsafe UnsafeMutableRawPointer.allocate(
      byteCount: capacity * MemoryLayout<Element>.stride,
      alignment: alignment
    ).bindMemory(to: Element.self, capacity: capacity)
  }

  @inlinable
  deinit {
    unsafe base.deinitialize(count: count)
    unsafe UnsafeMutableRawPointer(base).deallocate()
  }

  // Addresses instead of coroutines: no copies, and no allocations in debug builds.
  @inlinable
  subscript(index: Int) -> Element {
    unsafeAddress { unsafe UnsafePointer(address(of: index)) }
    unsafeMutableAddress { unsafe address(of: index) }
  }

  @inlinable
  subscript(index: Int32) -> Element {
    unsafeAddress { unsafe UnsafePointer(address(of: Int(index))) }
    unsafeMutableAddress { unsafe address(of: Int(index)) }
  }

  @inlinable
  func address(of index: Int) -> UnsafeMutablePointer<Element> {
    assert(index >= 0 && index < count, "Index \(index) outside 0..<\(count)")
    return unsafe base + index
  }

  @inlinable
  mutating func append(_ element: consuming Element) {
    if count == capacity { reallocate(capacity: capacity * 2) }
    unsafe (base + count).initialize(to: element)
    count += 1
  }

  /// Removes the last element, which must exist.
  @inlinable
  mutating func removeLast() -> Element {
    count -= 1
    return unsafe (base + count).move()
  }

  /// Grows with copies of `element` until `index` is inside.
  @inlinable
  mutating func extend(toInclude index: Int, with element: Element) {
    guard index >= count else { return }
    if index >= capacity { reallocate(capacity: max(index + 1, capacity * 2)) }
    unsafe (base + count).initialize(repeating: element, count: index + 1 - count)
    count = index + 1
  }

  /// Removes all elements and frees the memory beyond `capacity` of them.
  @inlinable
  mutating func removeAll(keeping capacity: Int) {
    unsafe base.deinitialize(count: count)
    count = 0
    if capacity < self.capacity { reallocate(capacity: max(capacity, 1)) }
  }

  @usableFromInline
  mutating func reallocate(capacity newCapacity: Int) {
    let moved = unsafe Self.memory(for: newCapacity)
    unsafe moved.moveInitialize(from: base, count: count)
    unsafe UnsafeMutableRawPointer(base).deallocate()
    unsafe base = moved
    capacity = newCapacity
  }
}
