// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// Reads the objects that most lines and messages are, without jansson's tree in between.
///
/// They are flat, with a few members; names and texts are printable ASCII without escapes, numbers
/// have up to 15 digits and no exponent. All else, mistakes included, is left to jansson.
package struct FlatObject {
  /// One member; that no name comes twice is for the caller to see.
  package struct Member {
    /// Where the name stands, without quotes.
    package let name: Range<Int>
    package let value: JSONValue
  }

  /// More members than this are left to jansson, which has a table of their names.
  private static let mostMembers = 16
  /// What a double holds exactly.
  private static let mostDigits = 15

  private var position = 0
  /// The object has been read to its end, and nothing stands behind it.
  package private(set) var isWhole = false

  package init() {}

  /// The whole of `bytes` as an object; `nil` where jansson has to look.
  static func read(_ bytes: Span<UInt8>) -> JSONValue? {
    var reader = FlatObject()
    return reader.object(in: bytes)
  }

  private mutating func object(in bytes: Span<UInt8>) -> JSONValue? {
    var members: [JSONValue.Member] = []
    members.reserveCapacity(4)
    while members.count < Self.mostMembers, let member = nextMember(in: bytes) {
      let name = Self.text(at: member.name, of: bytes)
      guard !members.contains(where: { $0.name == name }) else { return nil }
      members.append(.init(name, member.value))
    }
    return isWhole ? .object(members) : nil
  }

  /// The next member of the object that the whole of `bytes` is; `nil` behind the last, when
  /// ``isWhole`` is set, and where jansson has to look.
  package mutating func nextMember(in bytes: Span<UInt8>) -> Member? {
    guard !isWhole else { return nil }
    if position == 0 {
      guard next(in: bytes) == UInt8(ascii: "{") else { return nil }
      position += 1
    }
    guard next(in: bytes) == UInt8(ascii: "\""), let name = textRange(in: bytes),
      next(in: bytes) == UInt8(ascii: ":")
    else { return nil }
    position += 1
    guard let value = value(in: bytes) else { return nil }
    switch next(in: bytes) {
    case UInt8(ascii: ","): position += 1
    case UInt8(ascii: "}"):
      position += 1
      guard next(in: bytes) == nil else { return nil }
      isWhole = true
    default: return nil
    }
    return Member(name: name, value: value)
  }

  /// The next byte that is no white space; ``position`` stands on it.
  private mutating func next(in bytes: Span<UInt8>) -> UInt8? {
    while position < bytes.count {
      let byte = bytes[position]
      guard SourceText.isWhitespace(byte) else { return byte }
      position += 1
    }
    return nil
  }

  private mutating func value(in bytes: Span<UInt8>) -> JSONValue? {
    guard let first = next(in: bytes) else { return nil }
    switch first {
    case UInt8(ascii: "\""):
      guard let range = textRange(in: bytes) else { return nil }
      return .string(Self.text(at: range, of: bytes))
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number(in: bytes)
    case UInt8(ascii: "t"): return word("true", .boolean(true), in: bytes)
    case UInt8(ascii: "f"): return word("false", .boolean(false), in: bytes)
    case UInt8(ascii: "n"): return word("null", .null, in: bytes)
    default: return nil
    }
  }

  /// What stands between the quotes; ``position`` goes from the first to behind the second.
  private mutating func textRange(in bytes: Span<UInt8>) -> Range<Int>? {
    let start = position + 1
    var end = start
    while end < bytes.count, bytes[end] != UInt8(ascii: "\"") {
      guard (0x20..<0x7F).contains(bytes[end]), bytes[end] != UInt8(ascii: "\\") else { return nil }
      end += 1
    }
    guard end < bytes.count else { return nil }
    position = end + 1
    return start..<end
  }

  private static func text(at range: Range<Int>, of bytes: Span<UInt8>) -> String {
    unsafe bytes.extracting(range).withUnsafeBufferPointer {
      unsafe String(decoding: $0, as: UTF8.self)
    }
  }

  private mutating func word(
    _ word: StaticString,
    _ value: JSONValue,
    in bytes: Span<UInt8>
  ) -> JSONValue? {
    let end = position + word.utf8CodeUnitCount
    guard end <= bytes.count else { return nil }
    for offset in 0..<word.utf8CodeUnitCount {
      guard unsafe bytes[position + offset] == word.utf8Start[offset] else { return nil }
    }
    position = end
    return value
  }

  private mutating func number(in bytes: Span<UInt8>) -> JSONValue? {
    let isNegative = bytes[position] == UInt8(ascii: "-")
    if isNegative { position += 1 }
    var digits: Int64 = 0
    let start = position
    let whole = read(&digits, atMost: Self.mostDigits, in: bytes)
    guard whole == 1 || (whole > 1 && bytes[start] != UInt8(ascii: "0")) else { return nil }
    var decimals: Int?
    if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
      position += 1
      decimals = read(&digits, atMost: Self.mostDigits - whole, in: bytes)
    }
    // More digits, an exponent, or nothing that belongs here.
    if position < bytes.count, !Self.endsNumber(bytes[position]) { return nil }
    guard let decimals else { return .integer(isNegative ? -digits : digits) }
    guard decimals > 0 else { return nil }
    // Both operands are exact, so the quotient is the nearest double.
    let magnitude = Double(digits) / Self.powersOfTen[decimals]
    return .number(isNegative ? -magnitude : magnitude)
  }

  /// Reads decimal digits as the continuation of `number` and returns how many there were.
  private mutating func read(_ number: inout Int64, atMost limit: Int, in bytes: Span<UInt8>) -> Int
  {
    let start = position
    while position < bytes.count, position - start < limit {
      let digit = bytes[position] &- UInt8(ascii: "0")
      guard digit < 10 else { break }
      number = number * 10 + Int64(digit)
      position += 1
    }
    return position - start
  }

  private static func endsNumber(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || SourceText.isWhitespace(byte)
  }

  private static let powersOfTen: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
  ]
}
