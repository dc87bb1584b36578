// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

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
