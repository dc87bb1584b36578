// Settle
// SPDX-License-Identifier: Apache-2.0

/// The rules for MQTT topic names and filters in files.
enum TopicRules {
  /// Why a topic name is invalid; `nil` if it is valid.
  static func problem(inName name: String) -> String? {
    if name.utf8.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }) {
      return "no wildcard '+' or '#' is allowed here"
    }
    if name.utf8.first == UInt8(ascii: "$") { return "topics that start with '$' are the broker's" }
    return problem(inAny: name)
  }

  /// Why a topic filter is invalid; `nil` if it is valid.
  static func problem(inFilter filter: String) -> String? {
    if let problem = problem(inAny: filter) { return problem }
    let levels = levels(filter)
    for (index, level) in levels.enumerated() {
      if level.utf8.contains(UInt8(ascii: "#")), level != "#" || index != levels.count - 1 {
        return "'#' must be the last level, alone"
      }
      if level.utf8.contains(UInt8(ascii: "+")), level != "+" {
        return "'+' must be a level of its own"
      }
    }
    return nil
  }

  private static func problem(inAny topic: String) -> String? {
    if topic.isEmpty { return "the topic is empty" }
    if topic.utf8.count > 65_535 { return "a topic has at most 65,535 bytes" }
    for scalar in topic.unicodeScalars where scalar.value < 0x20 || (0x7F..<0xA0) ~= scalar.value {
      return "a topic has no control characters and no NUL"
    }
    if levels(topic).count > 200 { return "a topic has at most 200 levels" }
    return nil
  }

  /// Whether some topic matches both filters.
  ///
  /// A name counts as a filter without wildcards.
  static func overlap(_ left: String, _ right: String) -> Bool {
    let (a, b) = (levels(left), levels(right))
    // A wildcard in the first level does not match topics that start with `$`.
    if a[0].first == "$" || b[0].first == "$", a[0] != b[0] { return false }
    var index = 0
    while true {
      let (l, r) = (index < a.count ? a[index] : nil, index < b.count ? b[index] : nil)
      if l == "#" || r == "#" { return true }
      guard let l, let r else {
        return l == nil && r == nil
      }
      guard l == r || l == "+" || r == "+" else { return false }
      index += 1
    }
  }

  /// The wildcards of a filter, in order.
  static func wildcards(_ filter: String) -> [Substring] {
    levels(filter).filter { $0 == "+" || $0 == "#" }
  }

  static func levels(_ topic: String) -> [Substring] {
    topic.split(separator: "/", omittingEmptySubsequences: false)
  }
}
