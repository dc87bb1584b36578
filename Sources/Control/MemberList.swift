// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// An object of the grammar whose members are listed once, in the contract's order, for reading and
/// for writing.
package protocol ListedObject {
  /// The object before anything was read.
  init()
  mutating func list(_ members: inout MemberList)
}

extension ListedObject {
  package var json: JSONValue {
    var (copy, members) = (self, MemberList(reading: nil))
    copy.list(&members)
    return .object(members.written)
  }

  /// Reads an object; `nil` without a member that it needs.
  ///
  /// Members that this version does not know are ignored; what another version leaves out, or has
  /// of another type, keeps its default.
  package init?(_ json: JSONValue) {
    guard case .object = json else { return nil }
    self.init()
    var members = MemberList(reading: json)
    list(&members)
    guard members.isComplete else { return nil }
  }
}

/// The members of an object while they are read or written.
package struct MemberList {
  /// The object that is read; `nil` while one is written.
  private let source: JSONValue?
  private(set) var written: [JSONValue.Member] = []
  /// Whether every member that is needed was found.
  private(set) var isComplete = true

  init(reading source: JSONValue?) { self.source = source }

  /// A member with a form of its own; `write` returns `nil` where it is left out.
  mutating func member<Content>(
    _ name: String,
    _ content: inout Content,
    isNeeded: Bool = false,
    read: (JSONValue) -> Content?,
    write: (Content) -> JSONValue?
  ) {
    if let source {
      if let found = source[name].flatMap(read) {
        content = found
      } else if isNeeded {
        isComplete = false
      }
    } else if let json = write(content) {
      written.append(.init(name, json))
    }
  }

  mutating func text(_ name: String, _ text: inout String, isNeeded: Bool = false) {
    member(name, &text, isNeeded: isNeeded, read: \.string) { .string($0) }
  }

  /// `null` where there is none, or no member with `isShort`.
  mutating func text(_ name: String, _ text: inout String?, isShort: Bool = false) {
    member(name, &text, read: { .some($0.string) }) {
      $0.map { .string($0) } ?? (isShort ? nil : .null)
    }
  }

  mutating func texts(_ name: String, _ texts: inout [String]) {
    member(name, &texts, read: \.texts) { .texts($0) }
  }

  mutating func count(_ name: String, _ count: inout Int, isNeeded: Bool = false) {
    member(name, &count, isNeeded: isNeeded, read: \.count) { .count($0) }
  }

  mutating func count(_ name: String, _ count: inout Int?, isShort: Bool = false) {
    member(name, &count, read: { .some($0.count) }) { $0 == nil && isShort ? nil : .count($0) }
  }

  mutating func count(_ name: String, _ count: inout UInt64, isNeeded: Bool = false) {
    member(name, &count, isNeeded: isNeeded, read: { $0.count.map { UInt64(clamping: $0) } }) {
      .integer(Int64(clamping: $0))
    }
  }

  mutating func counts(_ name: String, _ counts: inout [Int]) {
    member(name, &counts, read: { $0.elements?.compactMap(\.count) }) {
      .array($0.map { .count($0) })
    }
  }

  mutating func flag(_ name: String, _ flag: inout Bool) {
    member(name, &flag, read: \.boolean) { .boolean($0) }
  }

  /// `null` where it is not known.
  mutating func flag(_ name: String, _ flag: inout Bool?) {
    member(name, &flag, read: { .some($0.boolean) }) { $0.map { .boolean($0) } ?? .null }
  }

  /// A flag that is written only while it is not `usual`.
  mutating func flag(_ name: String, _ flag: inout Bool, usual: Bool) {
    member(name, &flag, read: \.boolean) { $0 == usual ? nil : .boolean($0) }
  }

  mutating func value(_ name: String, _ value: inout JSONValue?) {
    member(name, &value, read: { .some($0.unlessNull) }) { $0 ?? .null }
  }

  /// One of a few words.
  mutating func word<Word: RawRepresentable<String>>(
    _ name: String,
    _ word: inout Word,
    isNeeded: Bool = false
  ) {
    member(name, &word, isNeeded: isNeeded, read: { $0.string.flatMap(Word.init) }) {
      .string($0.rawValue)
    }
  }

  mutating func word<Word: RawRepresentable<String>>(_ name: String, _ word: inout Word?) {
    member(name, &word, read: { .some($0.string.flatMap(Word.init)) }) {
      .text($0?.rawValue)
    }
  }

  /// `null` where there is none, or no member with `isShort`.
  mutating func object<Object: ListedObject>(
    _ name: String,
    _ object: inout Object?,
    isShort: Bool = false
  ) {
    // The literal nil is JSON's null.
    let absent = isShort ? Optional<JSONValue>.none : .some(.null)
    member(name, &object, read: { .some(Object($0)) }) { $0?.json ?? absent }
  }

  mutating func object<Object: ListedObject>(_ name: String, _ object: inout Object) {
    member(name, &object, read: Object.init) { $0.json }
  }

  /// A list; elements that cannot be read are left out.
  mutating func objects<Object: ListedObject>(_ name: String, _ objects: inout [Object]) {
    member(name, &objects, read: { $0.elements?.compactMap(Object.init) }) {
      .array($0.map(\.json))
    }
  }

  /// The members of an object that stand among those of this one, if it has them.
  mutating func included<Object: ListedObject>(_ object: inout Object?) {
    if let source {
      object = Object(source)
    } else {
      object?.list(&self)
    }
  }
}

extension JSONValue {
  static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
  static func texts(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
  static func count(_ count: Int?) -> JSONValue { count.map { .integer(Int64($0)) } ?? .null }

  /// An integer that fits `Int`.
  var count: Int? {
    switch self {
    case .integer(let number): Int(exactly: number)
    case .number(let number): Int(exactly: number)
    case .null, .boolean, .string, .array, .object: nil
    }
  }

  /// The texts of an array.
  var texts: [String]? { elements?.compactMap(\.string) }

  /// The value; `nil` for JSON's `null`.
  var unlessNull: JSONValue? {
    if case .null = self { .none } else { .some(self) }
  }
}
