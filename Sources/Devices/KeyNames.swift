// Settle
// SPDX-License-Identifier: Apache-2.0

/// A hash table from names to numbers, looked up by bytes so that no `String` is created.
struct KeyNames: Sendable {
  /// The bytes of all names, concatenated.
  private var bytes: [UInt8] = []
  /// The offset of each entry's name in ``bytes``; a name ends where the next one starts.
  private var starts: [Int32] = [0]
  /// The number that each entry maps to.
  private var targets: [Int32] = []
  /// Open addressing: zero is a free slot, anything else an entry's position plus one.
  ///
  /// The count is a power of two; at most half of the slots are in use.
  private var slots: [Int32] = [Int32](repeating: 0, count: 16)

  /// The number of names.
  var count: Int { targets.count }

  /// Reserves memory for so many names.
  mutating func reserve(_ count: Int) {
    starts.reserveCapacity(count + 1)
    targets.reserveCapacity(count)
    var size = slots.count
    while count * 2 > size { size *= 2 }
    if size > slots.count { grow(to: size) }
  }

  /// The name that was added after so many others.
  func name(_ entry: Int) -> String {
    String(decoding: bytes[Int(starts[entry])..<Int(starts[entry + 1])], as: UTF8.self)
  }

  /// Adds a name.
  ///
  /// A name that is already present keeps its first target.
  mutating func insert(_ name: String, target: Int32) {
    let key = Array(name.utf8)
    guard find(key.span) == nil else { return }
    bytes.append(contentsOf: key)
    starts.append(Int32(bytes.count))
    targets.append(target)
    if targets.count * 2 > slots.count {
      grow(to: slots.count * 2)
    } else {
      place(targets.count - 1)
    }
  }

  /// The target of `name`; expected constant time in the number of names.
  func find(_ name: Span<UInt8>) -> Int32? {
    let mask = slots.count - 1
    var slot = Self.hash(name) & mask
    while slots[slot] != 0 {
      let entry = Int(slots[slot]) - 1
      if isName(name, of: entry) { return targets[entry] }
      slot = (slot + 1) & mask
    }
    return nil
  }

  private func isName(_ name: Span<UInt8>, of entry: Int) -> Bool {
    let start = Int(starts[entry])
    guard Int(starts[entry + 1]) - start == name.count else { return false }
    for index in name.indices where bytes[start + index] != name[index] { return false }
    return true
  }

  private mutating func grow(to size: Int) {
    slots = [Int32](repeating: 0, count: size)
    for entry in targets.indices { place(entry) }
  }

  private mutating func place(_ entry: Int) {
    let mask = slots.count - 1
    var slot = hash(ofEntry: entry) & mask
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = Int32(entry + 1)
  }

  private func hash(ofEntry entry: Int) -> Int {
    Self.hash(bytes.span.extracting(Int(starts[entry])..<Int(starts[entry + 1])))
  }

  /// FNV-1a.
  ///
  /// Names come from the owner's own files, so collisions are not an attack.
  private static func hash(_ name: Span<UInt8>) -> Int {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in name.indices {
      hash = (hash ^ UInt64(name[index])) &* 0x0000_0100_0000_01b3
    }
    return Int(truncatingIfNeeded: (hash ^ hash >> 32) & 0x7fff_ffff)
  }
}

/// A pattern over keys: `*` matches any characters, `/` included; `?` matches one.
package struct Pattern: Hashable, Sendable {
  private let scalars: [Unicode.Scalar]

  package init(_ text: String) {
    scalars = Array(text.unicodeScalars)
  }

  /// Whether the pattern has no wildcard and therefore names one key.
  package var isLiteral: Bool { !scalars.contains { $0 == "*" || $0 == "?" } }

  /// Whether all of `key` matches.
  ///
  /// The worst case takes time proportional to the product of both lengths.
  package func matches(_ key: String) -> Bool { matches(Array(key.unicodeScalars)) }

  /// The same for the characters of a key that is compared with several patterns.
  package func matches(_ text: [Unicode.Scalar]) -> Bool {
    var place = 0
    var position = 0
    /// Where to continue after the last `*` matches one more character.
    var retry: (place: Int, position: Int)?
    while position < text.count {
      if place < scalars.count, scalars[place] == "*" {
        place += 1
        retry = (place, position)
      } else if place < scalars.count, scalars[place] == "?" || scalars[place] == text[position] {
        place += 1
        position += 1
      } else if let last = retry {
        retry = (last.place, last.position + 1)
        place = last.place
        position = last.position + 1
      } else {
        return false
      }
    }
    return scalars[place...].allSatisfy { $0 == "*" }
  }
}
