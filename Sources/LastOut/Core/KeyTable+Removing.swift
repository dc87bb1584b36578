// Settle
// SPDX-License-Identifier: Apache-2.0

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
