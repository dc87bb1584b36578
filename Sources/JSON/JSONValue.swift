// Settle
// SPDX-License-Identifier: Apache-2.0

/// A JSON value as a tree; objects keep the order of their members.
///
/// Scalars other than long strings need no heap allocation.
package enum JSONValue: Hashable, Sendable {
  case null
  case boolean(Bool)
  /// A number written without fraction or exponent that fits 64 bits.
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([Member])

  /// One name and value of an object.
  package struct Member: Hashable, Sendable {
    package var name: String
    package var value: JSONValue

    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// An object from alternating names and values.
  package static func object(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
    .object(members.map { Member($0.key, $0.value) })
  }

  /// The value of an integer or a number.
  package var double: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .null, .boolean, .string, .array, .object: nil
    }
  }

  /// Whether the value is a number that may have been written in other digits than those of its
  /// shortest form.
  package var isReal: Bool { if case .number = self { true } else { false } }

  /// The text of a string.
  package var string: String? {
    if case .string(let text) = self { text } else { nil }
  }

  package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }

  /// The elements of an array.
  package var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The members of an object.
  package var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The value of an object's first member called `name`; linear in the number of members.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral,
  ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(floatLiteral value: Double) { self = .number(value) }
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  package init(nilLiteral: ()) { self = .null }
}

/// A location inside a JSON document (RFC 6901); empty means the whole document.
package struct JSONPointer: Hashable, Sendable {
  /// The unescaped reference tokens, outermost first.
  package let tokens: [String]

  /// The pointer to the document itself.
  package static let whole = JSONPointer(tokens: [])

  /// The pointer along `tokens`, which are not escaped, outermost first.
  package init(tokens: [String]) { self.tokens = tokens }

  /// Reads a pointer; `nil` when `text` is not one.
  ///
  /// A pointer is empty or starts with `/`; `~` is followed by `0` or `1`.
  package init?(_ text: String) {
    if text.isEmpty {
      self = .whole
      return
    }
    guard text.utf8.first == UInt8(ascii: "/") else { return nil }
    var tokens: [String] = []
    for part in text.utf8.dropFirst().split(
      separator: UInt8(ascii: "/"),
      omittingEmptySubsequences: false
    ) {
      guard let token = Self.unescaped(part) else { return nil }
      tokens.append(token)
    }
    self.tokens = tokens
  }

  /// Whether the pointer refers to the whole document.
  package var isWhole: Bool { tokens.isEmpty }

  /// The pointer as it is written.
  package var text: String {
    var bytes: [UInt8] = []
    for token in tokens {
      bytes.append(UInt8(ascii: "/"))
      for byte in token.utf8 {
        switch byte {
        case UInt8(ascii: "~"): bytes.append(contentsOf: "~0".utf8)
        case UInt8(ascii: "/"): bytes.append(contentsOf: "~1".utf8)
        default: bytes.append(byte)
        }
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The value at this location; `nil` when the document has none.
  ///
  /// The first of several members with the same name counts. Linear in the number of members of
  /// the objects along the path.
  package func value(in document: JSONValue) -> JSONValue? {
    var current = document
    for token in tokens {
      switch current {
      case .object:
        guard let member = current[token] else { return nil }
        current = member
      case .array(let elements):
        guard let index = Self.arrayIndex(token), index < elements.count else { return nil }
        current = elements[index]
      case .null, .boolean, .integer, .number, .string: return nil
      }
    }
    return current
  }

  private static func unescaped(_ part: Substring.UTF8View.SubSequence) -> String? {
    var bytes: [UInt8] = []
    var isEscaped = false
    for byte in part {
      if isEscaped {
        switch byte {
        case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
        case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
        default: return nil
        }
        isEscaped = false
      } else if byte == UInt8(ascii: "~") {
        isEscaped = true
      } else {
        bytes.append(byte)
      }
    }
    return isEscaped ? nil : String(decoding: bytes, as: UTF8.self)
  }

  private static func arrayIndex(_ token: String) -> Int? {
    guard let index = Int(token), index >= 0, String(index) == token else { return nil }
    return index
  }
}

/// Writes JSON on one line, with numbers in their shortest form.
package enum JSONWriter {
  /// The bytes of `value`.
  package static func bytes(_ value: JSONValue) -> [UInt8] {
    var output: [UInt8] = []
    append(value, to: &output)
    return output
  }

  /// The text of `value`.
  package static func text(_ value: JSONValue) -> String {
    String(decoding: bytes(value), as: UTF8.self)
  }

  /// Appends the text of `value`.
  package static func append(_ value: JSONValue, to output: inout [UInt8]) {
    switch value {
    case .null: output.append(literal: "null")
    case .boolean(let flag): output.append(literal: flag ? "true" : "false")
    case .integer(let number): appendInteger(number, to: &output)
    case .number(let number): appendNumber(number, to: &output)
    case .string(let text): appendString(text, to: &output)
    case .array(let elements):
      output.append(UInt8(ascii: "["))
      for (position, element) in elements.enumerated() {
        if position > 0 { output.append(UInt8(ascii: ",")) }
        append(element, to: &output)
      }
      output.append(UInt8(ascii: "]"))
    case .object(let members):
      output.append(UInt8(ascii: "{"))
      for (position, member) in members.enumerated() {
        if position > 0 { output.append(UInt8(ascii: ",")) }
        appendString(member.name, to: &output)
        output.append(UInt8(ascii: ":"))
        append(member.value, to: &output)
      }
      output.append(UInt8(ascii: "}"))
    }
  }

  /// Appends the shortest text that reads back as `number`.
  ///
  /// Whole numbers have no fraction. Infinities and NaN, which JSON cannot represent, become
  /// `null`.
  package static func appendNumber(_ number: Double, to output: inout [UInt8]) {
    guard number.isFinite else {
      output.append(literal: "null")
      return
    }
    if number == number.rounded(.towardZero), abs(number) <= 0x1p53 {
      appendInteger(Int64(number), to: &output)
    } else {
      output.append(contentsOf: number.description.utf8)
    }
  }

  /// Appends `number` in decimal digits.
  package static func appendInteger(_ number: Int64, to output: inout [UInt8]) {
    var rest = number.magnitude
    if rest < 10, number >= 0 {
      return output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest))
    }
    // Filled from the end: the last digit first, the sign last.
    var characters = InlineArray<20, UInt8>(repeating: UInt8(ascii: "-"))
    var first = 20
    repeat {
      first -= 1
      characters[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0
    if number < 0 { first -= 1 }
    unsafe characters.span.extracting(first..<20).withUnsafeBufferPointer {
      unsafe output.append(contentsOf: $0)
    }
  }

  /// Appends `text` in quotes, escaped as JSON requires.
  package static func appendString(_ text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    let bytes = text.utf8.span
    if isPlain(bytes) {
      unsafe bytes.withUnsafeBufferPointer { unsafe output.append(contentsOf: $0) }
    } else {
      appendEscaped(bytes, to: &output)
    }
    output.append(UInt8(ascii: "\""))
  }

  /// Whether no byte needs an escape.
  private static func isPlain(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices {
      let byte = bytes[index]
      if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return false }
    }
    return true
  }

  private static func appendEscaped(_ bytes: Span<UInt8>, to output: inout [UInt8]) {
    for index in bytes.indices {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "\""): output.append(literal: "\\\"")
      case UInt8(ascii: "\\"): output.append(literal: "\\\\")
      case 0x0A: output.append(literal: "\\n")
      case 0x0D: output.append(literal: "\\r")
      case 0x09: output.append(literal: "\\t")
      case 0..<0x20:
        output.append(literal: "\\u00")
        output.append(hexDigit(byte >> 4))
        output.append(hexDigit(byte & 15))
      default: output.append(byte)
      }
    }
  }

  private static func hexDigit(_ nibble: UInt8) -> UInt8 {
    nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
  }
}

extension [UInt8] {
  /// Appends the bytes of a string literal.
  package mutating func append(literal text: StaticString) {
    unsafe append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    )
  }
}
