// Settle
// SPDX-License-Identifier: Apache-2.0

/// The marks that stand for placeholders in the strings of a ``DeviceTemplate``.
///
/// A mark is one character of a private plane of Unicode, so that no rule for topics, pointers or
/// payloads meets a `$`, and filling in needs no search for names. Mark 0 is `$n`, mark 1 to 9 is
/// `$1` to `$9`.
package enum TemplateMark {
  /// The first bytes of every mark; the last one counts from `first`.
  private static let prefix: [UInt8] = [0xF4, 0x8F, 0xA0]
  private static let first: UInt8 = 0x80
  package static let count = 10
  /// The mark of the items of a list.
  package static let item = 0

  /// The mark with a number from 0 to 9.
  package static func text(_ number: Int) -> String {
    String(decoding: prefix + [first + UInt8(number)], as: UTF8.self)
  }

  /// The placeholder as it is written in a file.
  package static func name(_ number: Int) -> String { number == 0 ? "$n" : "$\(number)" }

  /// `text` with marks in place of its placeholders.
  ///
  /// A placeholder counts only where no letter, digit or underscore follows, and `$$` stands for
  /// `$`, here and in what reads the text later.
  package static func marked(_ text: String) -> String {
    guard text.utf8.contains(dollar) else { return text }
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == dollar, index + 1 < bytes.count {
        if bytes[index + 1] == dollar {
          result += [dollar, dollar]
          index += 2
          continue
        }
        if let number = number(of: bytes[index + 1]),
          index + 2 == bytes.count || !isWordByte(bytes[index + 2])
        {
          result += prefix + [first + UInt8(number)]
          index += 2
          continue
        }
      }
      result.append(bytes[index])
      index += 1
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// `text` with the names of placeholders in place of its marks, for messages.
  package static func unmarked(_ text: String) -> String {
    replaced(text) { Array(name($0).utf8) }
  }

  /// The numbers of the marks in `text`.
  package static func numbers(in text: String) -> Set<Int> {
    var found: Set<Int> = []
    _ = replaced(text) { number in
      found.insert(number)
      return []
    }
    return found
  }

  /// Whether `topic` is `pattern` with some text in place of its marks, none of it across levels.
  static func matches(_ topic: String, _ pattern: String) -> Bool {
    let slash = UInt8(ascii: "/")
    let levels = topic.utf8.split(separator: slash, omittingEmptySubsequences: false)
    let wanted = pattern.utf8.split(separator: slash, omittingEmptySubsequences: false)
    guard levels.count == wanted.count else { return false }
    return zip(levels, wanted).allSatisfy { level, wanted in
      let parts = pieces(of: String(wanted) ?? "")
      guard parts.count > 1, let first = parts.first, let last = parts.last else {
        return level.elementsEqual(wanted)
      }
      return level.count > first.count + last.count && level.starts(with: first)
        && level.suffix(last.count).elementsEqual(last)
    }
  }

  /// The bytes before, between and after the marks of `text`.
  static func pieces(of text: String) -> [[UInt8]] { parts(of: text).map { $0.text } }

  /// The bytes before each mark of `text` with the number of the mark, then those behind the last.
  static func parts(of text: String) -> [(text: [UInt8], mark: Int?)] {
    var parts: [(text: [UInt8], mark: Int?)] = []
    var piece: [UInt8] = []
    let bytes = Array(text.utf8)
    var index = 0
    while index < bytes.count {
      if isMark(bytes, at: index) {
        parts.append((piece, Int(bytes[index + 3] - first)))
        piece = []
        index += 4
      } else {
        piece.append(bytes[index])
        index += 1
      }
    }
    parts.append((piece, nil))
    return parts
  }

  private static func isMark(_ text: [UInt8], at index: Int) -> Bool {
    guard text[index] == prefix[0], index + 3 < text.count else { return false }
    return text[index + 1] == prefix[1] && text[index + 2] == prefix[2]
      && text[index + 3] >= first && Int(text[index + 3] - first) < count
  }

  /// The number of the mark that is all of `text`, if it is one.
  static func number(ofWhole text: String) -> Int? {
    guard text.utf8.count == 4, text.utf8.starts(with: prefix), let last = text.utf8.last,
      last >= first, Int(last - first) < count
    else { return nil }
    return Int(last - first)
  }

  /// The length of a colon and the string after it that is one mark.
  static let memberLength = 7

  /// The number of the mark that is all of the string after a colon at `index`, if it is one.
  static func number(ofMember json: [UInt8], at index: Int) -> Int? {
    guard json[index] == UInt8(ascii: ":"), index + memberLength <= json.count,
      json[index + 1] == quote, json[index + 6] == quote, isMark(json, at: index + 2)
    else { return nil }
    return Int(json[index + 5] - first)
  }

  /// `text` with other bytes in place of its marks; the text itself where it has none.
  static func replaced(_ text: String, by bytes: (Int) -> [UInt8]) -> String {
    guard text.utf8.contains(prefix[0]) else { return text }
    return String(decoding: replaced(Array(text.utf8), by: bytes), as: UTF8.self)
  }

  static func replaced(_ text: [UInt8], by bytes: (Int) -> [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count + 8)
    var index = 0
    while index < text.count {
      if isMark(text, at: index) {
        result += bytes(Int(text[index + 3] - first))
        index += 4
      } else {
        result.append(text[index])
        index += 1
      }
    }
    return result
  }

  private static let dollar = UInt8(ascii: "$")
  private static let quote = UInt8(ascii: "\"")

  private static func number(of byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "n"): 0
    case UInt8(ascii: "1")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
    default: nil
    }
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}

/// A topic of a template, from which the device that it belongs to can be told.
package struct MarkedTopic: Sendable {
  /// A level with a mark.
  package struct Level: Sendable {
    /// Its position among the levels of the topic.
    package let position: Int
    let mark: Int
    let prefix: [UInt8]
    let suffix: [UInt8]
  }

  package let levels: [Level]
  /// The topic with `+` in place of each level with a mark.
  package let filter: String
  /// Whether a mark is always all of its level.
  package let hasWholeLevels: Bool

  /// Reads a topic of devices whose identifiers have these marks.
  ///
  /// Returns `nil` where the topic is not each device's own, or a level has several marks.
  package init?(_ topic: String, marks: [Int]) {
    var levels: [Level] = []
    var filter: [Substring] = []
    let parts = topic.split(separator: "/", omittingEmptySubsequences: false)
    for (position, part) in parts.enumerated() {
      let pieces = TemplateMark.parts(of: String(part))
      guard pieces.count <= 2 else { return nil }
      guard let mark = pieces[0].mark else {
        filter.append(part)
        continue
      }
      let (prefix, suffix) = (pieces[0].text, pieces[1].text)
      levels.append(Level(position: position, mark: mark, prefix: prefix, suffix: suffix))
      filter.append("+")
    }
    guard !marks.isEmpty, Set(levels.map(\.mark)) == Set(marks) else { return nil }
    self.levels = levels
    self.filter = filter.joined(separator: "/")
    hasWholeLevels = levels.allSatisfy { $0.prefix.isEmpty && $0.suffix.isEmpty }
  }

  /// The device of `definition` that `topic` belongs to, whose levels other than ``levels`` match
  /// already.
  ///
  /// `bounds` has the range of each level of the topic.
  package func device(
    _ topic: Span<UInt8>,
    levels bounds: [Range<Int>],
    of definition: DeviceDefinition,
    in registry: Registry
  ) -> Int? {
    var texts: [(mark: Int, range: Range<Int>)] = []
    for level in levels {
      let range = bounds[level.position]
      guard range.count > level.prefix.count + level.suffix.count else { return nil }
      let inner = range.lowerBound + level.prefix.count..<range.upperBound - level.suffix.count
      for (place, byte) in level.prefix.enumerated()
      where topic[range.lowerBound + place] != byte { return nil }
      for (place, byte) in level.suffix.enumerated()
      where topic[inner.upperBound + place] != byte { return nil }
      if let known = texts.first(where: { $0.mark == level.mark }) {
        guard Self.areEqual(topic.extracting(known.range), topic.extracting(inner)) else {
          return nil
        }
      } else {
        texts.append((level.mark, inner))
      }
    }
    var id: [UInt8] = []
    for piece in definition.idPieces {
      id += piece.text
      guard let range = texts.first(where: { $0.mark == piece.mark })?.range else { continue }
      for place in range { id.append(topic[place]) }
    }
    guard let number = registry.deviceIndex(ofID: id.span),
      registry.definition(ofDevice: number) === definition
    else { return nil }
    // Different texts may make the same identifier of several marks.
    guard texts.count > 1 else { return number }
    let fillings = registry.tables.fillings(ofDevice: number).byMark(definition.marks)
    let isSame = texts.allSatisfy { mark, range in
      guard let text = fillings[mark]?.text else { return false }
      return Self.areEqual(topic.extracting(range), text.utf8.span)
    }
    return isSame ? number : nil
  }

  private static func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for place in left.indices where left[place] != right[place] { return false }
    return true
  }
}
