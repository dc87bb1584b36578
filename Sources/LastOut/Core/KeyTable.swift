// Settle
// SPDX-License-Identifier: Apache-2.0

/// Interns names, as raw bytes, to dense ``KeyIndex`` numbers through one open-addressed table.
///
/// The first name gets index 0, the next one 1. A name stays for the table's life. Looking up a
/// known name costs one hash, about one probe and one comparison, and allocates nothing.
public struct KeyTable: ~Copyable {
  /// Where a name lies in the arena.
  @usableFromInline
  struct Name {
    @usableFromInline var offset: UInt32
    @usableFromInline var length: UInt32

    @inlinable
    init(offset: UInt32, length: UInt32) {
      self.offset = offset
      self.length = length
    }
  }

  /// A place in the table; it knows where its name lies, so that a look-up touches two places only.
  @usableFromInline
  struct Cell {
    /// The upper half of the name's hash.
    @usableFromInline var tag: UInt32 = 0
    /// -1 while the cell is empty.
    @usableFromInline var index: Int32 = -1
    @usableFromInline var name = Name(offset: 0, length: 0)

    @inlinable init() {}

    @inlinable
    init(hash: UInt64, index: Int, name: Name) {
      tag = KeyTable.tag(hash)
      self.index = Int32(truncatingIfNeeded: index)
      self.name = name
    }
  }

  /// A power of two of them, at most half of them taken.
  @usableFromInline var cells: Buffer<Cell>
  @usableFromInline var names: Buffer<Name>
  /// The bytes of all names, one after the other.
  @usableFromInline var arena: Buffer<UInt8>
  /// Differs from table to table, so that nobody can choose names that all collide.
  @usableFromInline let seed = UInt64.random(in: .min ... .max)

  /// Creates an empty table with room for `capacity` names.
  @inlinable
  public init(capacity: Int = 64) {
    var size = 16
    while size < capacity * 2 { size *= 2 }
    cells = Buffer(capacity: size)
    cells.extend(toInclude: size - 1, with: Cell())
    names = Buffer(capacity: capacity)
    arena = Buffer(capacity: capacity * 16)
  }

  /// How many names were interned.
  @inlinable public var count: Int { names.count }

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
      let hash = unsafe Self.hash(bytes, seed: seed)
      return unsafe index(in: probe(bytes, hash: hash))
    }
  }

  /// The index of `name`, if it was interned.
  @inlinable
  public func find(_ name: String) -> KeyIndex? {
    find(name.utf8.span)
  }

  /// The name behind `index`; bytes that are no UTF-8 show as replacement characters.
  public func name(of index: KeyIndex) -> String {
    guard index.rawValue >= 0, Int(index.rawValue) < names.count else {
      preconditionFailure("Key \(index.rawValue) was never interned; there are \(names.count).")
    }
    return unsafe String(decoding: bytes(of: names[index.rawValue]), as: UTF8.self)
  }

  @inlinable
  mutating func intern(_ bytes: UnsafeBufferPointer<UInt8>) -> KeyIndex {
    let hash = unsafe Self.hash(bytes, seed: seed)
    let cell = unsafe probe(bytes, hash: hash)
    if let known = index(in: cell) { return known }
    return unsafe add(bytes, hash: hash, cell: cell)
  }

  @usableFromInline
  mutating func add(_ bytes: UnsafeBufferPointer<UInt8>, hash: UInt64, cell: Int) -> KeyIndex {
    let index = names.count
    precondition(index < Int(Int32.max), "More than 2^31 names were interned.")
    precondition(
      arena.count + bytes.count <= Int(UInt32.max),
      "The interned names exceed 4 GiB."
    )
    let name = Name(offset: UInt32(arena.count), length: UInt32(bytes.count))
    names.append(name)
    for position in 0..<bytes.count { unsafe arena.append(bytes[position]) }
    cells[cell] = Cell(hash: hash, index: index, name: name)
    if names.count * 2 > cells.count { grow() }
    return KeyIndex(Int32(index))
  }

  @usableFromInline
  mutating func grow() {
    let size = cells.count * 2
    cells = Buffer(capacity: size)
    cells.extend(toInclude: size - 1, with: Cell())
    for index in 0..<names.count {
      let hash = unsafe Self.hash(bytes(of: names[index]), seed: seed)
      var cell = Int(truncatingIfNeeded: hash) & (size - 1)
      while cells[cell].index >= 0 { cell = (cell + 1) & (size - 1) }
      cells[cell] = Cell(hash: hash, index: index, name: names[index])
    }
  }

  /// The cell that holds the name, or the empty one where it belongs.
  @inlinable
  @inline(__always)
  func probe(_ bytes: UnsafeBufferPointer<UInt8>, hash: UInt64) -> Int {
    let mask = cells.count &- 1
    var cell = Int(truncatingIfNeeded: hash) & mask
    while true {
      if cells[cell].index < 0 { return cell }
      if cells[cell].tag == Self.tag(hash),
        unsafe Self.isEqual(self.bytes(of: cells[cell].name), bytes)
      {
        return cell
      }
      cell = (cell &+ 1) & mask
    }
  }

  @inlinable
  func index(in cell: Int) -> KeyIndex? {
    let index = cells[cell].index
    return index < 0 ? nil : KeyIndex(index)
  }

  @inlinable
  func bytes(of name: Name) -> UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: arena.base + Int(name.offset), count: Int(name.length))
  }

  @inlinable
  static func tag(_ hash: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) }
}
