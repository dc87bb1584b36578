// Settle
// SPDX-License-Identifier: Apache-2.0

/// The slots of all keys that are not idle, and the links between them.
@usableFromInline
struct Slab<Value>: ~Copyable {
  @usableFromInline var slots: Buffer<Slot<Value>>
  /// The base links of the first slots: of none, as long as no key has a longest time.
  @usableFromInline var bases = Buffer<BaseLinks>(capacity: 1)
  @usableFromInline var free = SlotList()
  /// How many slots have an owner, and the most there were since there was none.
  @usableFromInline var used = 0
  @usableFromInline var peak = 0
  @usableFromInline let smallest: Int

  @inlinable
  init(capacity: Int) {
    slots = Buffer(capacity: capacity)
    smallest = max(capacity, 64)
  }

  @inlinable
  subscript(index: Int32) -> Slot<Value> {
    unsafeAddress { unsafe UnsafePointer(slots.address(of: Int(index))) }
    unsafeMutableAddress { unsafe slots.address(of: Int(index)) }
  }

  /// Gives `key` a slot.
  @inlinable
  @inline(__always)
  mutating func allocate(for key: Int32) -> Int32 {
    used += 1
    peak = max(peak, used)
    var index = free.head
    if index >= 0 {
      free.head = slots[index].next
    } else {
      precondition(slots.count < Int(Int32.max), "More than 2^31 keys are active at once.")
      index = Int32(truncatingIfNeeded: slots.count)
      slots.append(Slot())
    }
    slots[index].key = key
    return index
  }

  /// Takes the slot back; its value must be gone and it must be in no list.
  @inlinable
  mutating func release(_ index: Int32) {
    slots[index] = Slot()
    slots[index].next = free.head
    free.head = index
    used -= 1
    if used == 0 { settle() }
  }

  /// Halves the memory after a period that needed less than a quarter of it.
  @usableFromInline
  mutating func settle() {
    let isOversized = slots.count > smallest && peak < slots.count / 4
    peak = 0
    guard isOversized else { return }
    slots.removeAll(keeping: max(slots.capacity / 2, smallest))
    bases.removeAll(keeping: min(bases.capacity, slots.capacity))
    free = SlotList()
  }

  // MARK: The list that `phase` names

  @inlinable
  mutating func append(_ index: Int32, to list: inout SlotList) {
    let base = unsafe slots.base
    unsafe base[Int(index)].previous = list.tail
    unsafe base[Int(index)].next = -1
    if list.tail >= 0 { unsafe base[Int(list.tail)].next = index } else { list.head = index }
    list.tail = index
  }

  @inlinable
  mutating func remove(_ index: Int32, from list: inout SlotList) {
    let base = unsafe slots.base
    let next = unsafe base[Int(index)].next
    let previous = unsafe base[Int(index)].previous
    if previous >= 0 { unsafe base[Int(previous)].next = next } else { list.head = next }
    if next >= 0 { unsafe base[Int(next)].previous = previous } else { list.tail = previous }
  }

  @inlinable
  mutating func moveToTail(_ index: Int32, of list: inout SlotList) {
    let tail = list.tail
    guard tail != index else { return }
    let base = unsafe slots.base
    let next = unsafe base[Int(index)].next
    let previous = unsafe base[Int(index)].previous
    if previous >= 0 { unsafe base[Int(previous)].next = next } else { list.head = next }
    // What is not the tail has a neighbour after it, and there is a tail.
    unsafe base[Int(next)].previous = previous
    unsafe base[Int(tail)].next = index
    unsafe base[Int(index)].previous = tail
    unsafe base[Int(index)].next = -1
    list.tail = index
  }

  // MARK: The base list

  @inlinable
  mutating func appendBase(_ index: Int32, to list: inout SlotList) {
    bases.extend(toInclude: Int(index), with: BaseLinks())
    bases[index].previous = list.tail
    bases[index].next = -1
    if list.tail >= 0 { bases[list.tail].next = index } else { list.head = index }
    list.tail = index
  }

  @inlinable
  mutating func removeBase(_ index: Int32, from list: inout SlotList) {
    let next = bases[index].next
    let previous = bases[index].previous
    if previous >= 0 { bases[previous].next = next } else { list.head = next }
    if next >= 0 { bases[next].previous = previous } else { list.tail = previous }
  }
}

/// A slot's neighbours in a base list.
@usableFromInline
struct BaseLinks {
  @usableFromInline var next: Int32 = -1
  @usableFromInline var previous: Int32 = -1

  @inlinable init() {}
}
