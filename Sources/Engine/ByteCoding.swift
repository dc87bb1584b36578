// Settle
// SPDX-License-Identifier: Apache-2.0

/// Writes numbers as LEB128, and texts and bytes as their length and content.
package struct ByteWriter {
  package var bytes: [UInt8] = []

  package init() {}

  package mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  package mutating func append(_ content: [UInt8]) {
    append(UInt64(content.count))
    bytes += content
  }

  package mutating func append(_ text: String) {
    append(UInt64(text.utf8.count))
    bytes += text.utf8
  }
}

/// Reads what ``ByteWriter`` wrote; every read is `nil` where the bytes end or make no sense.
package struct ByteReader {
  private let content: [UInt8]
  private var place = 0

  package init(_ bytes: [UInt8]) { content = bytes }

  package var isAtEnd: Bool { place == content.count }

  package mutating func byte() -> UInt8? {
    guard place < content.count else { return nil }
    defer { place += 1 }
    return content[place]
  }

  package mutating func number() -> UInt64? {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while let next = byte() {
      let bits = UInt64(next & 0x7F)
      guard shift < 63 || bits <= 1, shift <= 63 else { return nil }
      result |= bits << shift
      if next & 0x80 == 0 { return result }
      shift += 7
    }
    return nil
  }

  /// A number of things that follow, each of at least one byte.
  package mutating func count() -> Int? {
    guard let number = number(), let count = Int(exactly: number), count <= 1 << 24 else {
      return nil
    }
    return count
  }

  package mutating func bytes() -> [UInt8]? {
    guard let count = count(), count <= content.count - place else { return nil }
    defer { place += count }
    return Array(content[place..<place + count])
  }

  package mutating func text() -> String? {
    bytes().flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// A duration, which may be as long as 64 bits of nanoseconds.
  package mutating func milliseconds() -> Duration? {
    number().flatMap { $0 <= Int64.max / 1_000_000 ? .milliseconds(Int64($0)) : nil }
  }
}
