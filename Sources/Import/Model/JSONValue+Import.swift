// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

extension JSONValue {
  /// The elements of the member `name`, if that is an array.
  func elements(_ name: String) -> [JSONValue]? { self[name]?.elements }

  /// The longest text of a value on the wire, in bytes, such as a code for infrared.
  static let longestWord = 16 << 10

  /// Whether this is a boolean, a finite number, or text of 1 byte to ``longestWord``.
  var isWord: Bool {
    switch self {
    case .boolean, .integer: true
    case .number(let number): number.isFinite
    case .string(let text): !text.isEmpty && text.utf8.count <= Self.longestWord
    case .null, .array, .object: false
    }
  }

  /// The value with other values for those texts that `replacement` replaces.
  func replacingTexts(_ replacement: (String) -> JSONValue?) -> JSONValue {
    switch self {
    case .string(let text): replacement(text) ?? self
    case .array(let elements): .array(elements.map { $0.replacingTexts(replacement) })
    case .object(let members):
      .object(members.map { Member($0.name, $0.value.replacingTexts(replacement)) })
    case .null, .boolean, .integer, .number: self
    }
  }

  /// Whether two values are equal in a device file: numbers by value, members in any order.
  func isEquivalent(to other: JSONValue) -> Bool {
    if let left = double, let right = other.double { return left == right }
    switch (self, other) {
    case (.array(let left), .array(let right)):
      return left.count == right.count && zip(left, right).allSatisfy { $0.isEquivalent(to: $1) }
    case (.object(let left), .object(let right)):
      return left.count == right.count
        && left.allSatisfy { other[$0.name]?.isEquivalent(to: $0.value) ?? false }
    default: return self == other
    }
  }
}

/// The words of a choice.
enum ChoiceWords {
  /// Creates `values:` from announced values: a list, or a mapping if some are not text.
  ///
  /// An empty word is left out. Returns `nil` when there are none or more than 500, or when one is
  /// not a word.
  static func field(_ values: [JSONValue]) -> JSONValue? {
    field(values.filter { $0 != "" }.map { (word: $0.scalarText ?? "", wire: $0) })
  }

  /// Creates `values:` from words and their wire values.
  static func field(_ words: [(word: String, wire: JSONValue)]) -> JSONValue? {
    guard !words.isEmpty, words.count <= 500, words.allSatisfy({ $0.wire.isWord }) else {
      return nil
    }
    var seen: Set<String> = []
    let members = words.filter { !$0.word.isEmpty && seen.insert($0.word).inserted }
    if members.allSatisfy({ $0.wire == .string($0.word) }) {
      return .array(members.map { .string($0.word) })
    }
    return .object(members.map { JSONValue.Member($0.word, $0.wire) })
  }
}
