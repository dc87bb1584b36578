// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

extension Property {
  /// Reads a value that a user gave: a JSON value, or a bare word as a string.
  ///
  /// Numbers are snapped to the step and never clamped. A text such as `50%` is that part of the
  /// range, and one such as `red` that color.
  ///
  /// - Throws: ``ValidationError`` when the input is not a value of this property.
  package func value(from input: JSONValue) throws(ValidationError) -> Value {
    try checkHasCommands()
    return try kind.value(from: input)
  }

  /// Reads a bare payload or argument: `40`, `on`, `heat`, `#ff8800`.
  ///
  /// Text that starts with `{`, `[` or `"` is JSON: parse it and use ``value(from:)``.
  ///
  /// - Throws: ``ValidationError`` when the text is not a value of this property.
  package func value(fromText text: String) throws(ValidationError) -> Value {
    if case .text = kind, !isReadOnly { return .text(text) }
    return try value(from: .string(text))
  }

  /// Reads a bare payload from bytes.
  ///
  /// Creates no `String` for numbers and booleans.
  ///
  /// A payload that starts with `{`, `[` or `"` is JSON: parse it and use ``value(from:)``.
  ///
  /// - Throws: ``ValidationError`` when the payload is not a value of this property.
  package func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    try checkHasCommands()
    return try kind.value(fromPayload: bytes)
  }
}

extension ValueKind {
  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    let word = bytes.extracting(Self.bounds(of: bytes))
    switch self {
    case .number(let rule):
      if let number = Self.number(word) { return try checked(number, rule, wholeOnly: false) }
    case .integer(let rule):
      if let number = Self.number(word) { return try checked(number, rule, wholeOnly: true) }
    case .boolean:
      if let flag = Self.flag(word: word) { return .boolean(flag) }
    case .choice(let words):
      for choice in words where Self.isSame(choice, word) { return .text(choice) }
    case .text: return .text(try Self.text(of: bytes))
    case .color, .action: break
    }
    return try value(from: .string(Self.text(of: bytes)))
  }

  /// A number without a plus sign, which would be a step.
  private static func number(_ word: Span<UInt8>) -> Double? {
    guard word.isEmpty || word[0] != UInt8(ascii: "+") else { return nil }
    return NumberText.parse(word)
  }

  /// The text of a payload, which must be UTF-8.
  private static func text(of bytes: Span<UInt8>) throws(ValidationError) -> String {
    var copy: [UInt8] = []
    copy.reserveCapacity(bytes.count)
    for index in bytes.indices { copy.append(bytes[index]) }
    guard let text = String(validating: copy, as: UTF8.self) else {
      throw .wrongType(
        found: "bytes that are not UTF-8",
        expected: "text in UTF-8",
        suggestion: nil
      )
    }
    return text
  }

  private static func isSame(_ word: String, _ bytes: Span<UInt8>) -> Bool {
    guard word.utf8.count == bytes.count else { return false }
    var index = 0
    for byte in word.utf8 {
      if byte != bytes[index] { return false }
      index += 1
    }
    return true
  }

  /// The range without leading and trailing spaces, tabs and line breaks.
  private static func bounds(of bytes: Span<UInt8>) -> Range<Int> {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    var start = 0
    var end = bytes.count
    while start < end, isSpace(bytes[start]) { start += 1 }
    while end > start, isSpace(bytes[end - 1]) { end -= 1 }
    return start..<end
  }
}
