// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

extension JSONValue {
  /// The elements of an array.
  var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The members of an object.
  var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The elements of the array that is the member `name`.
  func elements(_ name: String) -> [JSONValue]? { self[name]?.elements }

  /// Whether this is true or false, a number or a text that is not empty.
  var isWord: Bool {
    switch self {
    case .boolean, .integer: true
    case .number(let number): number.isFinite
    case .string(let text): !text.isEmpty && text.utf8.count <= 200
    case .null, .array, .object: false
    }
  }
}

/// The words of a choice.
enum ChoiceWords {
  /// `values:` for announced values: a list, or a mapping where some leave as other than text.
  ///
  /// `nil` where there are none, or where something is no word.
  static func field(_ values: [JSONValue]) -> JSONValue? {
    guard !values.isEmpty, values.count <= 500, values.allSatisfy(\.isWord) else { return nil }
    var seen: Set<String> = []
    let members = values.compactMap { value in
      value.scalarText.flatMap { seen.insert($0).inserted ? JSONValue.Member($0, value) : nil }
    }
    if members.allSatisfy({ $0.value == .string($0.name) }) {
      return .array(members.map(\.value))
    }
    return .object(members)
  }

  /// `values:` for words and what leaves for each.
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
