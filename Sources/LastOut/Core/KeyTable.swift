// Settle
// SPDX-License-Identifier: Apache-2.0

/// Interns names, as raw bytes, to dense ``KeyIndex`` numbers through one open-addressed table.
///
/// The first name gets index 0, the next one 1. A name stays for the table's life. Looking up a
/// known name costs one hash, about one probe and one comparison, and allocates nothing.
public struct KeyTable: ~Copyable {
  /// Zero, or the upper half of a name's hash above its index plus one; the length is a power of 2.
  @usableFromInline var cells: Buffer<UInt64>
  /// Where each name begins in the arena, and at the end where the next one will.
  @usableFromInline var starts: Buffer<UInt32>
  /// The bytes of all names, one after the other.
  @usableFromInline var arena: Buffer<UInt8>
  /// Differs from table to table, so that nobody can choose names that all collide.
  @usableFromInline let seed = Seed()

  /// Creates an empty table.
  ///
  /// - Parameters:
  ///   - capacity: For how many names there is room at first.
  ///   - bytes: For how many bytes of names; `nil` for sixteen a name.
  @inlinable
  public init(capacity: Int = 64, bytes: Int? = nil) {
    var size = 16
    while Self.isFull(count: capacity, size: size) { size *= 2 }
    cells = Buffer(capacity: size)
    cells.extend(toInclude: size - 1, with: 0)
    starts = Buffer(capacity: capacity + 1)
    starts.append(0)
    arena = Buffer(capacity: bytes ?? capacity * 16)
  }

  /// How many names were interned.
  @inlinable public var count: Int { starts.count - 1 }

  /// The index of `name`, which is added if it is new.
  @inlinable
  public mutating func intern(_ name: Span<UInt8>) -> KeyIndex {
    unsafe name.withUnsafeBufferPointer { unsafe intern($0) }
  }

  /// The index of `name`, which is added if it is new.
  @inlinable
  public mutating func intern(_ name: String) -> KeyIndex {
    intern(name.utf8.span)
  }

  /// The index of `name`, if it was interned.
  @inlinable
  public func find(_ name: Span<UInt8>) -> KeyIndex? {
    unsafe name.withUnsafeBufferPointer { bytes in
      let start = unsafe UnsafeRawPointer(bytes.baseAddress ?? UnsafePointer(arena.base))
      let isLong = bytes.count > Self.shortest
      let hash = unsafe Self.hash(start, bytes.count, isLong: isLong, seed: seed)
      return unsafe find(start, bytes.count, isLong: isLong, hash: hash)
    }
  }

  /// The index of `name`, if it was interned.
  @inlinable
  public func find(_ name: String) -> KeyIndex? {
    find(name.utf8.span)
  }

  /// The name behind `index`; bytes that are no UTF-8 show as replacement characters.
  public func name(of index: KeyIndex) -> String {
    guard index.rawValue >= 0, Int(index.rawValue) < count else {
      preconditionFailure("Key \(index.rawValue) was never interned; there are \(count).")
    }
    let start = Int(starts[index.rawValue])
    let length = Int(starts[index.rawValue + 1]) - start
    let bytes = unsafe UnsafeBufferPointer(start: arena.base + start, count: length)
    return unsafe String(decoding: bytes, as: UTF8.self)
  }

  @inlinable
  @inline(__always)
  mutating func intern(_ bytes: UnsafeBufferPointer<UInt8>) -> KeyIndex {
    guard let start = unsafe UnsafeRawPointer(bytes.baseAddress), bytes.count > Self.shortest
    else { return unsafe internShort(bytes) }
    let hash = unsafe Self.hash(start, bytes.count, isLong: true, seed: seed)
    return unsafe find(start, bytes.count, isLong: true, hash: hash)
      ?? add(start, bytes.count, hash: hash)
  }

  @usableFromInline
  mutating func internShort(_ bytes: UnsafeBufferPointer<UInt8>) -> KeyIndex {
    let start = unsafe UnsafeRawPointer(bytes.baseAddress ?? UnsafePointer(arena.base))
    let hash = unsafe Self.hash(start, bytes.count, isLong: false, seed: seed)
    return unsafe find(start, bytes.count, isLong: false, hash: hash)
      ?? add(start, bytes.count, hash: hash)
  }

  @inlinable
  @inline(__always)
  func find(_ start: UnsafeRawPointer, _ count: Int, isLong: Bool, hash: UInt64) -> KeyIndex? {
    let mask = cells.count &- 1
    var cell = Int(truncatingIfNeeded: hash) & mask
    while true {
      let entry = cells[cell]
      if entry == 0 { return nil }
      if (entry ^ hash) &>> 32 == 0 {
        let index = Int(truncatingIfNeeded: entry & 0xFFFF_FFFF) &- 1
        let offset = starts[index]
        if Int(starts[index &+ 1] &- offset) == count,
          unsafe Self.isEqual(arena.base + Int(offset), start, count: count, isLong: isLong)
        {
          return KeyIndex(Int32(truncatingIfNeeded: index))
        }
      }
      cell = (cell &+ 1) & mask
    }
  }

  @usableFromInline
  mutating func add(_ start: UnsafeRawPointer, _ length: Int, hash: UInt64) -> KeyIndex {
    let index = count
    precondition(index < Int(Int32.max), "More than 2^31 names were interned.")
    precondition(
      arena.count + length <= Int(UInt32.max),
      "The interned names exceed 4 GiB."
    )
    for offset in 0..<length {
      unsafe arena.append(start.load(fromByteOffset: offset, as: UInt8.self))
    }
    starts.append(UInt32(arena.count))
    if Self.isFull(count: count, size: cells.count) { grow() } else { place(index, hash: hash) }
    return KeyIndex(Int32(index))
  }

  @usableFromInline
  mutating func grow() {
    let size = cells.count * 2
    cells = Buffer(capacity: size)
    cells.extend(toInclude: size - 1, with: 0)
    for index in 0..<count {
      let start = unsafe UnsafeRawPointer(arena.base + Int(starts[index]))
      let length = Int(starts[index + 1] - starts[index])
      let isLong = length > Self.shortest
      unsafe place(index, hash: Self.hash(start, length, isLong: isLong, seed: seed))
    }
  }

  /// Writes a name's entry into the first cell that is empty.
  @usableFromInline
  mutating func place(_ index: Int, hash: UInt64) {
    let mask = cells.count - 1
    var cell = Int(truncatingIfNeeded: hash) & mask
    while cells[cell] != 0 { cell = (cell + 1) & mask }
    cells[cell] = hash & 0xFFFF_FFFF_0000_0000 | UInt64(index + 1)
  }

  /// Whether `count` names are too many for `size` cells.
  ///
  /// Seven eighths: twice the cells would save one probe in a look-up, and cost ten bytes a name.
  @inlinable
  static func isFull(count: Int, size: Int) -> Bool {
    count * 8 > size * 7
  }
}
