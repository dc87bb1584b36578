// Settle
// SPDX-License-Identifier: Apache-2.0

/// Rules for topic names and filters, checked before the C boundary.
///
/// A filter's `+` stands for one level, a `#` at its end for the rest, the parent level included.
/// Wildcards at the start do not match topics that begin with `$`.
package enum Topic {
  /// What MQTT can express, in bytes of UTF-8.
  package static let longestName = 65_535
  /// Brokers drop a connection that names more levels than this.
  package static let mostLevels = 200

  /// Why `name` cannot be published to; `nil` if it can: not empty, at most 65,535 bytes and 200
  /// levels, no NUL, control character, wildcard or leading `$`.
  package static func problem(inName name: String) -> String? {
    if isPlain(name) { return nil }
    if let problem = commonProblem(in: name, called: "topic") { return problem }
    if name.utf8.first == UInt8(ascii: "$") {
      return "the topic begins with $, which is the broker's own"
    }
    for wildcard in [plus, hash] where name.utf8.contains(wildcard) {
      return "the topic contains the wildcard \(Character(Unicode.Scalar(wildcard)))"
    }
    return nil
  }

  /// Whether a name is of the usual kind, which is seen in one pass over its bytes: it is asked of
  /// every message that leaves.
  private static func isPlain(_ name: String) -> Bool {
    let bytes = name.utf8.span
    guard !bytes.isEmpty, bytes[0] != UInt8(ascii: "$"), bytes.count <= longestName else {
      return false
    }
    var levels = 1
    for index in bytes.indices {
      let byte = bytes[index]
      guard (0x20..<0x7F).contains(byte), byte != plus, byte != hash else { return false }
      if byte == UInt8(ascii: "/") { levels += 1 }
    }
    return levels <= mostLevels
  }

  /// Why `filter` cannot be subscribed to; `nil` if it can.
  package static func problem(inFilter filter: String) -> String? {
    if let problem = commonProblem(in: filter, called: "topic filter") { return problem }
    let levels = levels(filter)
    for (position, level) in levels.enumerated() {
      if level.contains(hash), level.count > 1 || position < levels.count - 1 {
        return "# must stand alone, as the last level of a topic filter"
      }
      if level.contains(plus), level.count > 1 {
        return "+ must stand alone between two slashes of a topic filter"
      }
    }
    return nil
  }

  /// Whether `filter` matches `name`.
  package static func matches(filter: String, name: String) -> Bool {
    match(filter: filter, name: name) { _ in }
  }

  /// Whether some topic name could match both filters.
  package static func overlaps(_ left: String, _ right: String) -> Bool {
    let (left, right) = (levels(left), levels(right))
    if beginsWithWildcard(left) && isReserved(right) { return false }
    if beginsWithWildcard(right) && isReserved(left) { return false }
    var position = 0
    while true {
      switch (left.level(position), right.level(position)) {
      case (nil, nil): return true
      case (let level?, _) where level.elementsEqual([hash]): return true
      case (_, let level?) where level.elementsEqual([hash]): return true
      case (nil, _), (_, nil): return false
      case (let one?, let other?):
        let isWild = one.elementsEqual([plus]) || other.elementsEqual([plus])
        guard isWild || one.elementsEqual(other) else { return false }
      }
      position += 1
    }
  }

  /// What the wildcards of `filter` stand for in `name`, in order; `nil` if it does not match.
  ///
  /// `#` stands for the remaining levels with their slashes, which may be none.
  package static func captures(filter: String, name: String) -> [String]? {
    var captures: [String] = []
    let matches = match(filter: filter, name: name) { captures.append(String($0) ?? "") }
    return matches ? captures : nil
  }

  /// `template` (a filter) with its wildcards filled in, in order; captures that are left over are
  /// ignored, and `nil` if there are too few.
  ///
  /// A `#` filled with nothing also drops the slash before it, as `a/#` matches `a`.
  package static func fill(template: String, with captures: [String]) -> String? {
    var rest = captures[...]
    var filled: [String] = []
    for level in template.split(separator: "/", omittingEmptySubsequences: false) {
      guard level == "+" || level == "#" else {
        filled.append(String(level))
        continue
      }
      guard let capture = rest.popFirst() else { return nil }
      if level == "#" && capture.isEmpty && !filled.isEmpty { continue }
      filled.append(capture)
    }
    return filled.joined(separator: "/")
  }

  private static let plus = UInt8(ascii: "+")
  private static let hash = UInt8(ascii: "#")
  private typealias Level = Substring.UTF8View

  private static func match(
    filter: String,
    name: String,
    capture: (Level) -> Void
  ) -> Bool {
    let (pattern, given) = (levels(filter), levels(name))
    if beginsWithWildcard(pattern) && isReserved(given) { return false }
    for (position, level) in pattern.enumerated() {
      if level.elementsEqual([hash]) {
        let rest =
          position < given.count
          ? name.utf8[given[position].startIndex...] : name.utf8[name.utf8.endIndex...]
        capture(rest)
        return position <= given.count
      }
      guard position < given.count else { return false }
      if level.elementsEqual([plus]) {
        capture(given[position])
      } else if !level.elementsEqual(given[position]) {
        return false
      }
    }
    return pattern.count == given.count
  }

  private static func levels(_ text: String) -> [Level] {
    text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
  }

  private static func isReserved(_ levels: [Level]) -> Bool {
    levels.first?.first == UInt8(ascii: "$")
  }

  private static func beginsWithWildcard(_ levels: [Level]) -> Bool {
    levels.first?.first == plus || levels.first?.first == hash
  }

  private static func commonProblem(in text: String, called what: String) -> String? {
    if text.isEmpty { return "the \(what) is empty" }
    if text.utf8.count > longestName {
      return "the \(what) has \(text.utf8.count) bytes; at most \(longestName) are allowed"
    }
    let levels = text.utf8.count { $0 == UInt8(ascii: "/") } + 1
    if levels > mostLevels {
      return "the \(what) has \(levels) levels; at most \(mostLevels) are allowed"
    }
    for scalar in text.unicodeScalars where isForbidden(scalar) {
      let code = String(scalar.value, radix: 16, uppercase: true)
      let padded = String(repeating: "0", count: max(0, 4 - code.count)) + code
      return "the \(what) contains the character U+\(padded)"
    }
    return nil
  }

  /// Control characters, and the code points that are not characters.
  private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
      || (0xFDD0...0xFDEF).contains(scalar.value) || scalar.value & 0xFFFE == 0xFFFE
  }
}

extension Array {
  /// The element at `position`, or `nil` past the end.
  fileprivate func level(_ position: Int) -> Element? {
    position < count ? self[position] : nil
  }
}
