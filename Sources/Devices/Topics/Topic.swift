// Settle
// SPDX-License-Identifier: Apache-2.0

/// The rules of MQTT for topic names and topic filters.
///
/// A filter's `+` matches one level, a `#` at its end the remaining levels, the parent level
/// included. Wildcards in the first level do not match topics that begin with `$`.
package enum Topic {
  /// The longest name or filter, in bytes of UTF-8.
  package static let longestName = 65_535
  /// Brokers close a connection that names more levels than this.
  package static let mostLevels = 200

  /// Why `name` cannot be published to; `nil` if it can: not empty, at most 65,535 bytes and 200
  /// levels, no NUL, control character, wildcard or leading `$`.
  package static func problem(inName name: String) -> String? {
    if let problem = commonProblem(in: name, called: "topic") { return problem }
    if isReserved(name) { return reservedProblem }
    for wildcard in [plus, hash] where name.utf8.contains(wildcard) {
      return "the topic contains the wildcard \(Character(Unicode.Scalar(wildcard)))"
    }
    return nil
  }

  /// Why `filter` cannot be subscribed to; `nil` if it can.
  ///
  /// A shared subscription cannot: the broker would deliver each message to one of its clients.
  package static func problem(inFilter filter: String) -> String? {
    if let problem = commonProblem(in: filter, called: "topic filter") { return problem }
    let levels = levels(filter)
    if let first = levels.first, shared.contains(where: { first.elementsEqual($0.utf8) }) {
      return
        "a shared subscription (\(String(first) ?? "")/…) receives only some of the messages, and other "
        + "clients the rest; name the topic filter alone"
    }
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

  /// Whether a topic begins with `$`: only the broker publishes to it.
  package static func isReserved(_ topic: String) -> Bool {
    topic.utf8.first == UInt8(ascii: "$")
  }

  /// What ``problem(inName:)`` says about a reserved topic.
  package static let reservedProblem = "the topic begins with $, which is the broker's own"

  /// Whether a filter contains `+` or `#`.
  package static func hasWildcard(_ filter: String) -> Bool {
    filter.utf8.contains { $0 == plus || $0 == hash }
  }

  /// The wildcards of a filter, in order.
  package static func wildcards(of filter: String) -> [Substring] {
    filter.split(separator: "/").filter { $0 == "+" || $0 == "#" }
  }

  /// Whether `filter` matches `name`.
  package static func matches(filter: String, name: String) -> Bool {
    match(filter: filter, name: name) { _ in }
  }

  /// Whether some topic name could match both filters; a name is a filter without wildcards.
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

  /// The parts of `name` that the wildcards of `filter` match, in order; `nil` without a match.
  ///
  /// `#` matches the remaining levels with their slashes, which may be none.
  package static func captures(filter: String, name: String) -> [String]? {
    var captures: [String] = []
    let matches = match(filter: filter, name: name) { captures.append(String($0) ?? "") }
    return matches ? captures : nil
  }

  /// `template` (a filter) with `captures` in place of its wildcards, in order; more captures than
  /// wildcards are ignored, and `nil` is returned for fewer.
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

  /// What a shared subscription begins with: MQTT 5, 4.8.2, and the older form of EMQX and VerneMQ.
  private static let shared = ["$share", "$queue"]
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

  /// The rules that names and filters share.
  private static func commonProblem(in text: String, called what: String) -> String? {
    if text.isEmpty { return "the \(what) is empty" }
    let bytes = text.utf8.span
    if bytes.count > longestName {
      return "the \(what) has \(bytes.count) bytes; at most \(longestName) are allowed"
    }
    var levels = 1
    var isPrintableASCII = true
    for index in bytes.indices {
      if bytes[index] == UInt8(ascii: "/") { levels += 1 }
      isPrintableASCII = isPrintableASCII && (0x20..<0x7F).contains(bytes[index])
    }
    if levels > mostLevels {
      return "the \(what) has \(levels) levels; at most \(mostLevels) are allowed"
    }
    if isPrintableASCII { return nil }
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

/// Topic filters by their levels, to find those that overlap another one.
///
/// Takes time in proportion to the levels of a filter, and to what its wildcards match.
package struct FilterIndex {
  private struct Node {
    var children: [String: Int] = [:]
    /// The numbers of the filters that end here.
    var ends: [Int] = []
  }

  private var nodes = [Node()]
  private let filters: [String]

  /// Indexes filters, which get numbers in their order.
  package init(_ filters: [String]) {
    self.filters = filters
    for (number, filter) in filters.enumerated() {
      var place = 0
      for level in Self.levels(filter) { place = child(level, of: place) }
      nodes[place].ends.append(number)
    }
  }

  /// The numbers of the filters that some topic could match together with `filter`, in order.
  package func overlapping(_ filter: String) -> [Int] {
    var found: [Int] = []
    collect(Self.levels(filter)[...], from: 0, to: &found)
    // Whether a wildcard may match a reserved first level is for ``Topic`` to say.
    return found.sorted().filter { Topic.overlaps(filters[$0], filter) }
  }

  private func collect(_ levels: ArraySlice<String>, from place: Int, to found: inout [Int]) {
    if levels.first == "#" { return collectAll(from: place, to: &found) }
    let node = nodes[place]
    if let rest = node.children["#"] { found += nodes[rest].ends }
    guard let level = levels.first else {
      found += node.ends
      return
    }
    let names = level == "+" ? Array(node.children.keys) : [level, "+"]
    for name in names where name != "#" {
      guard let next = node.children[name] else { continue }
      collect(levels.dropFirst(), from: next, to: &found)
    }
  }

  private func collectAll(from place: Int, to found: inout [Int]) {
    let node = nodes[place]
    found += node.ends
    for next in node.children.values { collectAll(from: next, to: &found) }
  }

  private mutating func child(_ level: String, of place: Int) -> Int {
    if let known = nodes[place].children[level] { return known }
    nodes.append(Node())
    nodes[place].children[level] = nodes.count - 1
    return nodes.count - 1
  }

  private static func levels(_ filter: String) -> [String] {
    filter.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  }
}
