// Settle
// SPDX-License-Identifier: Apache-2.0

/// Interns names, as raw bytes, to dense ``KeyIndex`` numbers through one open-addressed table.
///
/// The first name gets index 0, the next one 1, unless the index of a removed name is free. Looking
/// up a known name of up to 31 bytes touches two cache lines, one of the cells and one of the
/// records: it costs one hash, about one probe and one comparison, and does not allocate.
@usableFromInline
@frozen
package struct KeyTable: ~Copyable {
  /// Zero, or the index plus one of a name in the bits of the mask, with bits of its hash above
  /// them.
  ///
  /// The length is a power of 2 and at least twice the count.
  @usableFromInline var cells: Buffer<UInt32>
  /// The length of `cells` minus one.
  @usableFromInline var mask: UInt32
  @usableFromInline var records: Buffer<NameRecord>
  /// The bytes of the names that are too long for a record.
  @usableFromInline var arena: Buffer<UInt8>
  /// The number of bytes in `arena` that belong to removed names.
  var waste = 0
  /// The first free record, which refers to the next one; -1 for none.
  var firstFree = -1
  /// The number of free records.
  @usableFromInline var freeCount = 0
  /// Random per table, so that an attacker cannot choose names that collide.
  @usableFromInline let seed = Seed()

  /// Creates an empty table.
  ///
  /// - Parameters:
  ///   - capacity: The initial capacity in names.
  ///   - bytes: The initial capacity for names longer than 31 bytes, in bytes.
  @usableFromInline
  package init(capacity: Int = 64, bytes: Int? = nil) {
    var size = 16
    while Self.isFull(count: capacity, size: size) { size *= 2 }
    cells = Buffer(capacity: size)
    cells.extend(toInclude: size - 1, with: 0)
    mask = UInt32(size - 1)
    records = Buffer(capacity: capacity)
    arena = Buffer(capacity: bytes ?? 0)
  }

  /// The number of names.
  @inlinable package var count: Int { records.count - freeCount }

  /// The largest index so far, plus one.
  @usableFromInline
  package var capacity: Int { records.count }

  /// The index of `name`, which is added if it is new.
  @inlinable
  @inline(__always)
  package mutating func intern(_ name: Span<UInt8>) -> KeyIndex {
    // The name outlives this call.
    unsafe find(name) ?? add(bytes: name.withUnsafeBufferPointer { unsafe $0 })
  }

  /// The index of `name`, which is added if it is new.
  @inlinable
  package mutating func intern(_ name: String) -> KeyIndex {
    if let known = find(name) { return known }
    var name = name
    return name.withUTF8 { unsafe add(bytes: $0) }
  }

  /// The index of `name`, if it is interned.
  @inlinable
  @inline(__always)
  package func find(_ name: Span<UInt8>) -> KeyIndex? {
    // The name outlives this call. Inside the closure the table would be a copy.
    unsafe find(bytes: name.withUnsafeBufferPointer { unsafe $0 })
  }

  /// The index of the name with these bytes, if it is interned.
  @inlinable
  @inline(__always)
  func find(bytes: UnsafeBufferPointer<UInt8>) -> KeyIndex? {
    // The usual length is inlined; other lengths cost a call.
    guard let start = unsafe UnsafeRawPointer(bytes.baseAddress), UsualName.fits(bytes.count)
    else { return unsafe findUnusual(bytes) }
    let usual = unsafe UsualName(start, bytes.count)
    return unsafe probe(usual.hash(seed)) { unsafe usual.isEqual($0) }
  }

  /// The index of `name`, if it is interned.
  @inlinable
  package func find(_ name: String) -> KeyIndex? {
    let found = unsafe name.utf8.withContiguousStorageIfAvailable { unsafe find(bytes: $0) }
    if let found { return found }
    var name = name
    return name.withUTF8 { unsafe find(bytes: $0) }
  }

  /// The name with this index; invalid UTF-8 becomes replacement characters.
  @usableFromInline
  package func name(of index: KeyIndex) -> String {
    guard isUsed(index) else {
      preconditionFailure("Key \(index.rawValue) was never interned; there are \(count).")
    }
    return unsafe String(decoding: bytes(of: Int(index.rawValue)), as: UTF8.self)
  }

  // MARK: Cells

  /// The index of the name with this hash whose record satisfies `isName`.
  @inlinable
  @inline(__always)
  func probe(_ hash: UInt64, isName: (UnsafePointer<NameRecord>) -> Bool) -> KeyIndex? {
    let tag = tag(of: hash)
    var cell = UInt32(truncatingIfNeeded: hash) & mask
    while true {
      let entry = cells[Int(cell)]
      if entry == 0 { return nil }
      // If the bits above the mask match, the rest is the index plus one.
      let number = entry ^ tag
      if number <= mask {
        let index = Int(number) &- 1
        if unsafe isName(records.address(of: index)) {
          return KeyIndex(Int32(truncatingIfNeeded: index))
        }
      }
      cell = (cell &+ 1) & mask
    }
  }

  /// The bits of a hash above the index in a cell.
  @inlinable
  func tag(of hash: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: hash &>> 32) & ~mask
  }

  /// ``find(_:)`` for names of any length.
  @usableFromInline
  func findUnusual(_ name: UnsafeBufferPointer<UInt8>) -> KeyIndex? {
    unsafe probe(Self.hash(name, seed: seed)) { record in
      let index = unsafe record - UnsafePointer(records.base)
      return unsafe Self.isEqual(bytes(of: index), name)
    }
  }

  /// Writes a name's entry into the first empty cell.
  private mutating func place(_ index: Int, hash: UInt64) {
    var cell = UInt32(truncatingIfNeeded: hash) & mask
    while cells[Int(cell)] != 0 { cell = (cell &+ 1) & mask }
    cells[Int(cell)] = tag(of: hash) | UInt32(index + 1)
  }

  /// Whether `count` names are too many for `size` cells.
  ///
  /// The limit is one half: then two of three look-ups find the name in the first cell.
  private static func isFull(count: Int, size: Int) -> Bool {
    count * 2 > size
  }

  // MARK: Names

  /// The bytes of a name, in its record or in the arena.
  func bytes(of index: Int) -> UnsafeBufferPointer<UInt8> {
    let record = unsafe UnsafePointer(records.address(of: index))
    if let place = unsafe record.pointee.place {
      return unsafe UnsafeBufferPointer(start: arena.base + place.start, count: place.count)
    }
    let start = unsafe UnsafeRawPointer(record).assumingMemoryBound(to: UInt8.self)
    return unsafe UnsafeBufferPointer(start: start, count: record.pointee.count)
  }

  /// Adds a new name.
  @usableFromInline
  mutating func add(bytes name: UnsafeBufferPointer<UInt8>) -> KeyIndex {
    let index = firstFree >= 0 ? firstFree : records.count
    precondition(index < Int(Int32.max), "More than 2^31 names were interned.")
    let record: NameRecord
    if name.count <= NameRecord.longest {
      record = unsafe NameRecord(name)
    } else {
      record = NameRecord(start: arena.count, count: name.count)
      for place in 0..<name.count { arena.append(unsafe name[place]) }
    }
    if index < records.count { reuse(index, for: record) } else { records.append(record) }
    if Self.isFull(count: count, size: cells.count) {
      grow()
    } else {
      unsafe place(index, hash: Self.hash(bytes(of: index), seed: seed))
    }
    return KeyIndex(Int32(index))
  }

  private mutating func grow() {
    let size = cells.count * 2
    cells = Buffer(capacity: size)
    cells.extend(toInclude: size - 1, with: 0)
    mask = UInt32(size - 1)
    for index in 0..<records.count where !records[index].isFree {
      unsafe place(index, hash: Self.hash(bytes(of: index), seed: seed))
    }
  }
}

/// A key's dense number, which the queue uses instead of the name.
@usableFromInline
@frozen
package struct KeyIndex: Hashable, Sendable {
  /// The number, from zero.
  @usableFromInline
  package let rawValue: Int32

  /// Creates an index from a number, which must not be negative.
  @inlinable
  package init(_ rawValue: Int32) {
    self.rawValue = rawValue
  }
}

extension KeyTable {
  /// The seed of a table's hash.
  ///
  /// Both numbers enter each product, so that no choice of names makes one factor zero.
  @usableFromInline
  @frozen
  struct Seed {
    @usableFromInline let first = UInt64.random(in: .min ... .max)
    @usableFromInline let second = UInt64.random(in: .min ... .max)

    @usableFromInline
    init() {}
  }

  /// Folds sixteen bytes at a time into a 64 by 64 bit product, whose halves are combined.
  ///
  /// The last step reads the last sixteen bytes of the name, some of them for the second time.
  static func hash(_ name: UnsafeBufferPointer<UInt8>, seed: Seed) -> UInt64 {
    var hash = seed.first ^ UInt64(truncatingIfNeeded: name.count)
    guard let start = unsafe UnsafeRawPointer(name.baseAddress), name.count >= 16 else {
      let words = unsafe shortWords(name)
      return fold(words.first ^ hash, words.last ^ seed.second)
    }
    // The first step is separate: a name of sixteen bytes is read twice.
    var offset = 0
    repeat {
      hash = unsafe fold(word(start, offset) ^ hash, word(start, offset &+ 8) ^ seed.second)
      offset &+= 16
    } while offset < name.count &- 16
    return unsafe fold(
      word(start, name.count &- 16) ^ hash,
      word(start, name.count &- 8) ^ seed.second
    )
  }

  /// Whether both buffers hold the same bytes.
  static func isEqual(
    _ left: UnsafeBufferPointer<UInt8>,
    _ right: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard left.count == right.count else { return false }
    guard let one = unsafe UnsafeRawPointer(left.baseAddress),
      let other = unsafe UnsafeRawPointer(right.baseAddress), left.count >= 16
    else {
      let (one, other) = unsafe (shortWords(left), shortWords(right))
      return one.first == other.first && one.last == other.last
    }
    var offset = 0
    while offset < left.count &- 16 {
      guard unsafe difference(one, other, at: offset) == 0 else { return false }
      offset &+= 16
    }
    return unsafe difference(one, other, at: left.count &- 16) == 0
  }

  /// Up to fifteen bytes as two numbers, which overlap for shorter names.
  private static func shortWords(
    _ name: UnsafeBufferPointer<UInt8>
  ) -> (first: UInt64, last: UInt64) {
    guard let start = unsafe UnsafeRawPointer(name.baseAddress), name.count > 0 else {
      return (0, 0)
    }
    let count = name.count
    if count >= 8 { return unsafe (word(start, 0), word(start, count &- 8)) }
    if count >= 4 {
      return unsafe (
        UInt64(start.loadUnaligned(as: UInt32.self)),
        UInt64(start.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      )
    }
    // One byte is read three times; of two, one is read twice.
    let middle = unsafe start.load(fromByteOffset: count &>> 1, as: UInt8.self)
    let last = unsafe start.load(fromByteOffset: count &- 1, as: UInt8.self)
    return unsafe (
      UInt64(start.load(as: UInt8.self)), UInt64(middle) &<< 8 | UInt64(last)
    )
  }

  /// Zero if sixteen bytes are equal.
  private static func difference(
    _ left: UnsafeRawPointer,
    _ right: UnsafeRawPointer,
    at offset: Int
  ) -> UInt64 {
    unsafe (word(left, offset) ^ word(right, offset))
      | (word(left, offset &+ 8) ^ word(right, offset &+ 8))
  }

  @inlinable
  @inline(__always)
  static func word(_ start: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  @inlinable
  @inline(__always)
  static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}

extension KeyTable {
  /// Whether the index is in use.
  @usableFromInline
  package func isUsed(_ index: KeyIndex) -> Bool {
    index.rawValue >= 0 && Int(index.rawValue) < records.count
      && !records[index.rawValue].isFree
  }

  /// Removes the name with this index; the next new name reuses the index.
  @usableFromInline
  package mutating func remove(_ index: KeyIndex) {
    guard isUsed(index) else {
      preconditionFailure("Key \(index.rawValue) has no name to remove.")
    }
    let number = Int(index.rawValue)
    unsafe clearCell(of: number, hash: Self.hash(bytes(of: number), seed: seed))
    waste += records[number].place?.count ?? 0
    records[number] = NameRecord(nextFree: firstFree)
    firstFree = number
    freeCount += 1
    if waste > 4096, waste > arena.count / 2 { compact() }
  }

  /// Reuses the first free record.
  mutating func reuse(_ index: Int, for record: NameRecord) {
    firstFree = records[index].nextFree
    records[index] = record
    freeCount -= 1
  }

  /// Empties the cell of a name and closes the gap in the cells after it.
  private mutating func clearCell(of index: Int, hash: UInt64) {
    let entry = tag(of: hash) | UInt32(index + 1)
    var gap = UInt32(truncatingIfNeeded: hash) & mask
    while cells[Int(gap)] != entry { gap = (gap &+ 1) & mask }
    var cell = gap
    while true {
      cell = (cell &+ 1) & mask
      let other = cells[Int(cell)]
      if other == 0 { break }
      // An entry can move back to the gap unless its search starts after the gap.
      let number = Int(other & mask) - 1
      let home = unsafe UInt32(truncatingIfNeeded: Self.hash(bytes(of: number), seed: seed)) & mask
      guard (cell &- home) & mask >= (cell &- gap) & mask else { continue }
      cells[Int(gap)] = other
      gap = cell
    }
    cells[Int(gap)] = 0
  }

  /// Compacts the remaining long names.
  private mutating func compact() {
    var kept = Buffer<UInt8>(capacity: max(arena.count - waste, 1))
    for index in 0..<records.count {
      guard let place = records[index].place else { continue }
      let start = kept.count
      for offset in 0..<place.count { kept.append(arena[place.start + offset]) }
      records[index] = NameRecord(start: start, count: place.count)
    }
    arena = kept
    waste = 0
  }
}
