// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

/// What makes a template of a device: `for:`, or `from:`.
///
/// Every mistake is reported here; the device itself is read nevertheless, so that its mistakes are
/// reported in the same run.
struct TemplateHead {
  enum Source {
    case items(TemplateItems)
    /// A topic filter with so many wildcards.
    case filter(String, wildcards: Int)
    /// One that is reported.
    case invalid
  }

  let source: Source
  /// The device, with marks in its strings.
  let pair: YAMLNode.Pair

  /// Reads the head of a device; `nil` for a device that is no template.
  init?(_ pair: YAMLNode.Pair, baseTopic: String, _ problems: Problems) {
    let keys = pair.value.pairs ?? []
    let items = keys.first { $0.key == "for" }
    let filter = keys.first { $0.key == "from" }
    guard let first = items ?? filter else { return nil }
    // The values of both keys have no placeholders.
    let rest = keys.map { key in
      key.key == "for" || key.key == "from"
        ? key
        : YAMLNode.Pair(
          key: TemplateMark.marked(key.key),
          keyPosition: key.keyPosition,
          value: key.value.marked()
        )
    }
    self.pair = YAMLNode.Pair(
      key: TemplateMark.marked(pair.key),
      keyPosition: pair.keyPosition,
      value: YAMLNode(.mapping(rest), at: pair.value.position)
    )
    if items != nil, let filter {
      problems.add(
        filter.keyPosition,
        "a device has either 'for', which lists devices, or 'from', which waits for their messages"
      )
      source = .invalid
      return
    }
    source =
      items != nil
      ? TemplateItems(first.value, problems).map { .items($0) } ?? .invalid
      : Self.filter(first.value, baseTopic: baseTopic, problems)
    checkMarks(problems)
  }

  /// What an identifier with a placeholder lacks; `nil` for one without.
  static func hint(for id: String) -> String? {
    let marks = TemplateMark.numbers(in: TemplateMark.marked(id))
    guard let mark = marks.min() else { return nil }
    return mark == 0
      ? "; '$n' needs 'for', which lists what it stands for"
      : "; '\(TemplateMark.name(mark))' needs 'from', the topics that it comes from"
  }

  private static func filter(
    _ node: YAMLNode,
    baseTopic: String,
    _ problems: Problems
  ) -> Source {
    guard let text = node.text, !node.isNull, !text.isEmpty else {
      problems.add(node, "from", expected: "a topic filter such as fleet/+/status")
      return .invalid
    }
    let wildcards = Topic.wildcards(of: text)
    let problem: String? =
      if let problem = Topic.problem(inFilter: text) {
        problem
      } else if wildcards.contains("#") {
        "'#' matches several levels, which no identifier can contain; '+' matches one"
      } else if wildcards.isEmpty {
        "'\(Excerpt.of(text))' has no wildcard; '+' stands for the level that differs from "
          + "device to device"
      } else if wildcards.count >= TemplateMark.count {
        "\(wildcards.count) wildcards; \(TemplateMark.count - 1) are allowed"
      } else if Topic.overlaps(text, "\(baseTopic)/#") {
        "'\(Excerpt.of(text))' matches topics of the gateway itself ('\(baseTopic)/#')"
      } else {
        nil
      }
    guard let problem else { return .filter(text, wildcards: wildcards.count) }
    problems.add(node.position, "from: \(problem)")
    return .invalid
  }

  /// The marks that have a meaning in this template.
  private var allowed: ClosedRange<Int>? {
    switch source {
    case .items: 0...0
    case .filter(_, let wildcards): 1...wildcards
    case .invalid: nil
    }
  }

  /// Reports placeholders without a meaning, and those that the identifier lacks.
  private func checkMarks(_ problems: Problems) {
    guard let allowed else { return }
    let names = allowed.map { "'\(TemplateMark.name($0))'" }
    let used = TemplateMark.numbers(in: pair.key)
    let key = allowed.lowerBound == 0 ? "for" : "from"
    let lacking = allowed.filter { !used.contains($0) }
    if !lacking.isEmpty {
      let missing = lacking.map(TemplateMark.name)
      problems.add(
        pair.keyPosition,
        "the identifier of a device with '\(key)' needs "
          + Section.list(missing.map { "'\($0)'" }) + ", which makes each device's own",
        suggestion: "\(Excerpt.of(pair.key))-\(missing.joined(separator: "-"))"
      )
    }
    let wrong = { (mark: Int) in !allowed.contains(mark) }
    let inKey = used.sorted().first(where: wrong).map { ($0, pair.keyPosition) }
    guard let (mark, position) = inKey ?? pair.value.firstMark(where: wrong) else { return }
    problems.add(
      position,
      "'\(TemplateMark.name(mark))' has no meaning in a device with '\(key)'; known: "
        + Section.list(names)
    )
  }
}

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
      problems.add(node, "for", expected: Self.forms)
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
      problems.add(node, "for", expected: "a number, a range such as 1..12, or a word")
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
