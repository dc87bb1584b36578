// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// A template of Home Assistant, which can be evaluated.
///
/// The subset of Jinja is that of announcements:
///
/// - the statements `if`, `elif`, `else`, `set`, and `for` without conditions; comments; the marks
///   that remove whitespace;
/// - literals, lists and tables, members, indices and slices, arithmetic, `~`, comparisons, `in`,
///   `and`, `or`, `not`, `A if B else C`;
/// - the filters, functions, methods and tests in ``TemplateFunctions``.
///
/// Everything else is refused: what depends on Home Assistant's own states or on the time, regular
/// expressions, macros, and what is longer or deeper than ``longest`` and ``deepest``.
struct Template {
  typealias Expression = (TemplateContext) throws -> TemplateValue
  typealias Statement = (TemplateContext) throws -> Void

  /// The maximum length of a template, in bytes.
  static let longest = 8192
  /// The maximum depth of its expressions and statements.
  static let deepest = 20

  /// What a template compares and looks up, from which its probes are made.
  struct Facts {
    /// The constants with which values are compared, and the keys of its tables.
    var compared: [TemplateValue] = []
    /// The texts that are arguments of methods and filters, such as separators.
    var arguments: [String] = []
    /// All of its texts.
    var texts: [String] = []
    /// The number of elements of its longest list.
    var longestList = 0
  }

  let text: String
  let facts: Facts
  /// Where the value is in a report, if the template only picks it.
  let pickedPath: [JSONValue]?
  private let body: Statement

  init(_ text: String) throws {
    guard text.utf8.count <= Self.longest else { throw TemplateFailure.unsupported }
    var parser = TemplateCompiler(try TemplateLexer.pieces(of: text))
    body = try parser.template()
    facts = parser.facts
    self.text = text
    let context = TemplateContext()
    if let only = parser.onlyExpression, case .report(let path)? = try? only(context),
      context.reads.isEmpty, context.presences.isEmpty
    {
      pickedPath = path
    } else {
      pickedPath = nil
    }
  }

  /// The template of a payload that is the value.
  static var plain: Template? { try? Template("{{ value }}") }

  /// What Home Assistant makes of the template, which removes surrounding whitespace.
  func rendered(_ context: TemplateContext) throws -> String {
    context.begin()
    try body(context)
    return context.output.trimmedSpace
  }

  /// The result for these variables of a command; `nil` if there is none.
  func rendered(_ variables: [String: TemplateValue], isExact: Bool = false) -> String? {
    let context = TemplateContext()
    context.variables = variables
    context.isExact = isExact
    return try? rendered(context)
  }
}

/// The variables of an evaluation, and what it has read of the report.
final class TemplateContext {
  /// The limit of steps of one evaluation, and of the bytes of a text.
  private static let mostSteps = 20_000
  static let longestText = 20_000

  /// The variables of commands, or those that a template has set.
  var variables: [String: TemplateValue] = [:]
  /// The report as text and as JSON, if it is some; `nil` for a command.
  var report: (text: String, json: JSONValue?)?
  /// Whether filters that round leave numbers as they are.
  var isExact = false
  private(set) var reads: Set<[JSONValue]> = []
  /// The paths that were only tested for being there.
  private(set) var presences: Set<[JSONValue]> = []
  fileprivate(set) var output = ""
  private var steps = 0

  func begin() {
    output = ""
    steps = 0
  }

  func step() throws {
    steps += 1
    if steps > Self.mostSteps { throw TemplateFailure.unsupported }
  }

  func write(_ text: String) throws {
    output = try limited(output + text)
  }

  func limited(_ text: String) throws -> String {
    guard text.utf8.count <= Self.longestText else { throw TemplateFailure.unsupported }
    return text
  }

  func variable(_ name: String) -> TemplateValue {
    if let value = variables[name] { return value }
    switch name {
    case "value" where report != nil:
      reads.insert([])
      return .text(report?.text ?? "")
    case "value_json", "value": return .report([])
    default: return .undefined
    }
  }

  /// The value of a part of the report, which counts as read; other values are as they are.
  func plain(_ value: TemplateValue) throws -> TemplateValue {
    guard case .report(let path) = value else { return value }
    reads.insert(path)
    return try found(path)
  }

  /// Whether a value is undefined; a part of the report does not count as read.
  func isUndefined(_ value: TemplateValue) throws -> Bool {
    guard case .report(let path) = value else { return value.isUndefined }
    presences.insert(path)
    return try found(path).isUndefined
  }

  private func found(_ path: [JSONValue]) throws -> TemplateValue {
    guard var json = report?.json else {
      if path.isEmpty { return .undefined }
      throw TemplateFailure.failed
    }
    for (place, step) in path.enumerated() {
      switch (json, step) {
      case (.object, .string(let name)):
        guard let member = json[name] else {
          // A member of something missing is a mistake; a missing member is not.
          if place == path.count - 1 { return .undefined }
          throw TemplateFailure.failed
        }
        json = member
      case (.array(let elements), .integer(let index)) where elements.indices.contains(Int(index)):
        json = elements[Int(index)]
      case (.string(let text), .integer(let index)):
        return try TemplateValue.text(text).element(.integer(index))
      default:
        if place == path.count - 1 { return .undefined }
        throw TemplateFailure.failed
      }
    }
    return TemplateValue(json)
  }
}

/// The template of a state, evaluated for reports with a value in one place.
struct ReportTemplate {
  /// A place that depends on what else is in a report.
  enum Place {
    /// The path of the only value that the template reads.
    case value([JSONValue])
    /// It reads no value, only whether there is one.
    case presence
    /// The paths of several values.
    case several([[JSONValue]])
  }

  /// Where it reads, as far as probes have shown.
  let place: Place
  let facts: Template.Facts
  /// Whether it only picks a value.
  let isPlain: Bool
  private let template: Template
  private let variables: [String: TemplateValue]

  init(_ template: Template, _ variables: [String: TemplateValue] = [:]) {
    self.template = template
    self.variables = variables
    facts = template.facts
    isPlain = template.pickedPath != nil
    if let path = template.pickedPath {
      place = .value(path)
      return
    }
    var reads: Set<[JSONValue]> = []
    var presences: Set<[JSONValue]> = []
    let fillers = [1, "x"] + facts.compared.compactMap(\.json).prefix(20)
    for round in 0..<6 {
      let known = reads.union(presences)
      for filler in fillers {
        let context = Self.context(known.map { ($0, filler) }, variables)
        _ = try? template.rendered(context)
        reads.formUnion(context.reads)
        presences.formUnion(context.presences)
      }
      if round > 0, reads.union(presences) == known { break }
    }
    // What contains a value is read on the way to it.
    let deepest = reads.filter { path in
      !reads.contains { $0.count > path.count && $0.starts(with: path) }
    }
    let isAlone = presences.allSatisfy { presence in
      deepest.contains { $0.starts(with: presence) }
    }
    if deepest.isEmpty, !presences.isEmpty {
      place = .presence
    } else if let path = deepest.first, deepest.count == 1, isAlone,
      path.isEmpty || !reads.contains([])
    {
      place = .value(path)
    } else {
      place = .several(deepest.union(presences).sorted { "\($0)" < "\($1)" })
    }
  }

  /// What the template makes of a report with a value at its place; `nil` if nothing.
  func result(of wire: JSONValue, isExact: Bool = false) -> String? {
    guard case .value(let path) = place else { return nil }
    return result(of: [(path, wire)], isExact: isExact)
  }

  func result(of parts: [(path: [JSONValue], wire: JSONValue)], isExact: Bool = false) -> String? {
    let context = Self.context(parts, variables)
    context.isExact = isExact
    return try? template.rendered(context)
  }

  private static func context(
    _ parts: [(path: [JSONValue], wire: JSONValue)],
    _ variables: [String: TemplateValue]
  ) -> TemplateContext {
    var json = JSONValue.object([])
    for part in parts.sorted(by: { $0.path.count < $1.path.count }) {
      json = json.placing(part.wire, at: part.path[...])
    }
    let text = json.scalarText ?? JSONWriter.text(json)
    let context = TemplateContext()
    context.variables = variables
    context.report = (
      text, json.string == nil ? json : try? JSONParser.parse(Array(text.utf8).span)
    )
    return context
  }
}

extension JSONValue {
  /// The value with another one at a path of names and indices.
  fileprivate func placing(_ value: JSONValue, at path: ArraySlice<JSONValue>) -> JSONValue {
    guard let step = path.first else { return value }
    let rest = path.dropFirst()
    switch step {
    case .integer(let index) where (0..<100).contains(index):
      var elements = self.elements ?? []
      while elements.count <= Int(index) { elements.append(.null) }
      elements[Int(index)] = elements[Int(index)].placing(value, at: rest)
      return .array(elements)
    default:
      let name = step.scalarText ?? ""
      var members = self.members ?? []
      let inner = (self[name] ?? .null).placing(value, at: rest)
      members.removeAll { $0.name == name }
      return .object(members + [Member(name, inner)])
    }
  }
}
