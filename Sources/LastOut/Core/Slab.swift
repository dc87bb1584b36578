// Settle
// SPDX-License-Identifier: Apache-2.0

/// The slots of all active keys, and the links between them.
@usableFromInline
@frozen
struct Slab<Value>: ~Copyable {
  @usableFromInline var slots: Buffer<Slot<Value>>
  /// The extras of the first slots; empty as long as every key only waits for quiet.
  @usableFromInline var extras = Buffer<SlotExtras>(capacity: 1)
  /// The last starts of the first slots; empty as long as no policy has an interval.
  @usableFromInline var spacings = Buffer<Spacing>(capacity: 1)
  @usableFromInline var free = SlotList()
  /// The number of slots with an owner, and its maximum since it was zero.
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

  /// Allocates an empty slot for `key`, in no list.
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
    slots[index].phase = .running
    return index
  }

  /// Frees a slot, which must be empty: no value, no run, nothing collapsed, in no list.
  @inlinable
  @inline(__always)
  mutating func release(_ index: Int32) {
    slots[index].phase = .free
    slots[index].isOpen = false
    slots[index].next = free.head
    free.head = index
    used -= 1
    if used == 0 { shrinkIfOversized() }
  }

  /// Halves the memory after a period that needed less than a quarter of it.
  @usableFromInline
  mutating func shrinkIfOversized() {
    let isOversized = slots.count > smallest && peak < slots.count / 4
    peak = 0
    guard isOversized else { return }
    slots.removeAll(keeping: max(slots.capacity / 2, smallest))
    extras.removeAll(keeping: min(extras.capacity, slots.capacity))
    spacings.removeAll(keeping: min(spacings.capacity, slots.capacity))
    free = SlotList()
  }

  // MARK: The list of `phase`

  @inlinable
  @inline(__always)
  mutating func append(_ index: Int32, to list: inout SlotList) {
    let base = unsafe slots.base
    unsafe base[Int(index)].previous = list.tail
    unsafe base[Int(index)].next = -1
    if list.tail >= 0 { unsafe base[Int(list.tail)].next = index } else { list.head = index }
    list.tail = index
  }

  @inlinable
  @inline(__always)
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
    // A slot that is not the tail has a next slot.
    unsafe base[Int(next)].previous = previous
    unsafe base[Int(tail)].next = index
    unsafe base[Int(index)].previous = tail
    unsafe base[Int(index)].next = -1
    list.tail = index
  }

  // MARK: The list of `maxWait`

  @inlinable
  mutating func appendMaxWait(_ index: Int32, to list: inout SlotList) {
    extras.extend(toInclude: Int(index), with: SlotExtras())
    extras[index].previous = list.tail
    extras[index].next = -1
    if list.tail >= 0 { extras[list.tail].next = index } else { list.head = index }
    list.tail = index
  }

  @inlinable
  mutating func removeMaxWait(_ index: Int32, from list: inout SlotList) {
    let next = extras[index].next
    let previous = extras[index].previous
    if previous >= 0 { extras[previous].next = next } else { list.head = next }
    if next >= 0 { extras[next].previous = previous } else { list.tail = previous }
  }

  // MARK: The interval between runs

  /// Records the start of a run, which starts an interval.
  @inlinable
  mutating func recordStart(of index: Int32, at now: UInt64, interval: UInt64) {
    spacings.extend(toInclude: Int(index), with: Spacing())
    spacings[index] = Spacing(start: now, end: now.saturatingAdd(interval))
  }

  /// When the interval allows the next run; in the past if it does not delay it.
  ///
  /// A slot is not freed before its interval has ended, so the value of an earlier owner is in the
  /// past.
  @inlinable
  func intervalEnd(of index: Int32, interval: UInt64) -> UInt64 {
    guard interval > 0, Int(index) < spacings.count else { return 0 }
    return min(spacings[index].end, spacings[index].start.saturatingAdd(interval))
  }

  /// Whether the interval since the slot's last run has not ended.
  @inlinable
  func isSpaced(_ index: Int32, at now: UInt64) -> Bool {
    Int(index) < spacings.count && spacings[index].end > now
  }

  // MARK: Deadlines that are not the end of quiet

  @inlinable
  mutating func setDue(_ due: UInt64, of index: Int32) {
    extras.extend(toInclude: Int(index), with: SlotExtras())
    extras[index].due = due
  }
}
