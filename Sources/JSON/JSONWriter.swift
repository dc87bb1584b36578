// Settle
// SPDX-License-Identifier: Apache-2.0

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
