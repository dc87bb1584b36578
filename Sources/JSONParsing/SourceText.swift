// Settle
// SPDX-License-Identifier: Apache-2.0

/// A copy of the text, for error messages.
struct SourceText {
  private let bytes: [UInt8]

  init(_ bytes: Span<UInt8>) {
    self.bytes = unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) }
  }

  /// Whether a byte is JSON white space.
  static func isWhitespace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  /// The error for a failure, with its line and column.
  func error(for failure: JSONFailure, at position: Int? = nil) -> JSONParseError {
    let position = failure.kind == .tooDeep ? tooDeepPosition() : position ?? failure.position
    let message =
      switch failure.kind {
      case .outOfMemory: "no memory left for this JSON text"
      case .tooDeep: "arrays and objects nest deeper than \(JSONParser.maximumDepth)"
      case .invalidUTF8: "text is not UTF-8: \(failure.message)"
      case .endOfInput: "the text ends too early: \(failure.message)"
      case .trailingText: "only one JSON value is allowed: \(failure.message)"
      case .nulByte: "a NUL byte is not allowed in JSON text"
      case .nulInName: "a member's name may not contain NUL"
      case .duplicateName: "the same member comes twice: \(failure.message)"
      case .numericOverflow: "the number is too large: \(failure.message)"
      case .syntax: failure.message
      }
    let (line, column) = place(of: position)
    return JSONParseError(message: message, line: line, column: column)
  }

  /// The same text with integers that do not fit 64 bits written as reals, which do.
  ///
  /// `nil` when there are none, so that a real out of range stays an error.
  func wideningLongIntegers() -> WidenedText? {
    var widened = WidenedText()
    var index = 0
    var copied = 0
    var inString = false
    while index < bytes.count {
      let byte = bytes[index]
      if inString {
        if byte == UInt8(ascii: "\\") { index += 1 }
        if byte == UInt8(ascii: "\"") { inString = false }
        index += 1
      } else if byte == UInt8(ascii: "\"") {
        inString = true
        index += 1
      } else if byte == UInt8(ascii: "-") || Self.isDigit(byte) {
        let end = endOfNumber(from: index)
        if isLongInteger(from: index, to: end) {
          widened.append(bytes[copied..<end])
          widened.insertExponent()
          copied = end
        }
        index = end
      } else {
        index += 1
      }
    }
    guard !widened.bytes.isEmpty else { return nil }
    widened.append(bytes[copied...])
    return widened
  }

  private func endOfNumber(from start: Int) -> Int {
    var index = start + 1
    while index < bytes.count, Self.isDigit(bytes[index]) || "+-.eE".utf8.contains(bytes[index]) {
      index += 1
    }
    return index
  }

  /// Whether the number is written as an integer and does not fit 64 bits.
  private func isLongInteger(from start: Int, to end: Int) -> Bool {
    guard end - start >= 19 else { return false }
    let token = bytes[start..<end]
    return token.dropFirst().allSatisfy(Self.isDigit)
      && Int64(String(decoding: token, as: UTF8.self)) == nil
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  /// The number of bytes read when the nesting became too deep.
  private func tooDeepPosition() -> Int {
    var depth = 0
    var inString = false
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\\") where inString: index += 1
      case UInt8(ascii: "\""): inString.toggle()
      case UInt8(ascii: "["), UInt8(ascii: "{"): if !inString { depth += 1 }
      case UInt8(ascii: "]"), UInt8(ascii: "}"): if !inString { depth -= 1 }
      default: break
      }
      index += 1
      if depth > JSONParser.maximumDepth { break }
    }
    return index
  }

  private func place(of position: Int) -> (line: Int, column: Int) {
    var line = 1
    var column = 0
    for index in 0..<min(position, bytes.count) {
      if bytes[index] == 0x0A {
        line += 1
        column = 0
      } else if bytes[index] & 0xC0 != 0x80 {
        column += 1
      }
    }
    return (line, max(column, 1))
  }
}

/// A text with an exponent added to some of its integers, and a mapping to the original positions.
struct WidenedText {
  private(set) var bytes: [UInt8] = []
  /// The positions of the added exponents in ``bytes``; ascending.
  private var exponents: [Int] = []

  mutating func append(_ source: ArraySlice<UInt8>) { bytes.append(contentsOf: source) }

  mutating func insertExponent() {
    exponents.append(bytes.count)
    bytes.append(contentsOf: "e0".utf8)
  }

  /// The position in the original text of a position in this one.
  func originalPosition(of position: Int) -> Int {
    position - 2 * exponents.count { $0 < position }
  }
}
