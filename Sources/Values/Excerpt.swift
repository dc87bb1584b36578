// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Makes input safe to quote in a message: short, on one line, without control characters.
package enum Excerpt {
  /// At most `limit` characters of `text`, with control characters escaped.
  package static func of(_ text: String, limit: Int = 60) -> String {
    var result = ""
    var count = 0
    for scalar in text.unicodeScalars {
      if count == limit { return result + "…" }
      count += 1
      if let escape = escape(scalar) {
        result += escape
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// All of `text` with its control characters escaped, so that it cannot control a terminal.
  package static func visible(_ text: String, keepingLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: { escape($0) != nil }) else { return text }
    return text.unicodeScalars.map { scalar in
      keepingLines && scalar == "\n" ? "\n" : escape(scalar) ?? String(scalar)
    }.joined()
  }

  /// The escape sequence for a character that controls a terminal or breaks the line; `nil` for
  /// all others.
  package static func escape(_ scalar: Unicode.Scalar) -> String? {
    switch scalar.value {
    case 0x0A: "\\n"
    case 0x09: "\\t"
    case 0x0D: "\\r"
    case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
      "\\u{\(String(scalar.value, radix: 16))}"
    default: nil
    }
  }

  /// A short description of a value: text in quotes, arrays and objects by type only.
  package static func of(_ value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .boolean, .integer, .number: JSONWriter.text(value)
    case .string(let text): "'\(of(text))'"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
