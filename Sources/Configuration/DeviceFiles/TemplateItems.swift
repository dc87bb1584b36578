// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// The items of `for:`: numbers, ranges of numbers and words.
struct TemplateItems {
  /// One entry of the list.
  enum Entry {
    case word(String)
    /// Digits with at least `width` places.
    case range(ClosedRange<Int>, width: Int)

    var count: Int {
      switch self {
      case .word: 1
      case .range(let numbers, _): numbers.count
      }
    }

    /// The texts that stand for `$n`, in order.
    var texts: [String] {
      switch self {
      case .word(let word): [word]
      case .range(let numbers, let width):
        numbers.map { number in
          let digits = String(number)
          return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
        }
      }
    }
  }

  private(set) var entries: [(entry: Entry, node: YAMLNode)] = []

  static let forms = "a list such as [1..12] or [kitchen, hall, 7]"

  /// The number of devices.
  var count: Int {
    entries.reduce(0) { $0.addingReportingOverflow($1.entry.count).partialValue }
  }

  /// Reads the value of `for:`; reports every entry that is none.
  init?(_ node: YAMLNode, _ problems: Problems) {
    guard let elements = node.elements ?? (node.isNull || node.pairs != nil ? nil : [node]) else {
      problems.add(node.position, "for: found \(node.kindDescription), expected \(Self.forms)")
      return nil
    }
    guard !elements.isEmpty else {
      problems.add(node.position, "for: the list is empty; expected \(Self.forms)")
      return nil
    }
    for element in elements {
      if let entry = Self.entry(element, problems) { entries.append((entry, element)) }
    }
    if entries.count < elements.count { return nil }
  }

  private static func entry(_ node: YAMLNode, _ problems: Problems) -> Entry? {
    guard let text = node.text, !node.isNull, !text.isEmpty else {
      problems.add(
        node.position,
        "for: found \(node.kindDescription), expected a number, a range such as 1..12, or a word"
      )
      return nil
    }
    if let dots = text.firstPlace(of: ".."),
      case let parts = [String(text[..<dots.lowerBound]), String(text[dots.upperBound...])],
      let first = number(parts[0]), let last = number(parts[1])
    {
      guard first <= last else {
        problems.add(
          node.position,
          "for: the range '\(Excerpt.of(text))' is upside down",
          suggestion: "\(parts[1])..\(parts[0])"
        )
        return nil
      }
      let isPadded = parts.contains { $0.utf8.count > 1 && $0.utf8.first == UInt8(ascii: "0") }
      let width = isPadded ? parts.map(\.utf8.count).max() ?? 1 : 1
      return .range(first...last, width: width)
    }
    if let meant = meantRange(text), node.word != nil {
      problems.add(
        node.position,
        "for: '\(Excerpt.of(text))' is no range; two dots stand between its first and last number",
        suggestion: meant
      )
      return nil
    }
    return .word(text)
  }

  /// A whole number of at most nine digits.
  private static func number(_ text: String) -> Int? {
    let isDigits = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return isDigits && (1...9).contains(text.utf8.count) ? Int(text) : nil
  }

  /// The range that a text such as `1-12`, `1...12` or `1 .. 12` means.
  private static func meantRange(_ text: String) -> String? {
    let parts = text.split { $0 == "." || $0 == "-" || $0 == " " || $0 == "<" }.map(String.init)
    let isNumber =
      text.split(separator: ".").count == 2 && !text.has("..")
      && text.utf8.count { $0 == UInt8(ascii: ".") } == 1
    guard parts.count == 2, !isNumber, let first = number(parts[0]), let last = number(parts[1])
    else { return nil }
    return "\(min(first, last))..\(max(first, last))"
  }
}
