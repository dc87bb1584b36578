// Settle
// SPDX-License-Identifier: Apache-2.0

/// A location inside a JSON document (RFC 6901); empty means the whole document.
package struct JSONPointer: Hashable, Sendable {
  /// The unescaped reference tokens, outermost first.
  private let tokens: [String]

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
    let digits = token.utf8
    guard let first = digits.first, digits.allSatisfy({ (0x30...0x39).contains($0) }),
      first != 0x30 || digits.count == 1
    else { return nil }
    return Int(token)
  }
}
