// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Lights with the schema `template`, whose commands are one template with a part for each value.
enum TemplateLightEntity {
  /// The variables of `command_on_template` and `command_off_template`.
  private static let variables: Set = [
    "state", "brightness", "color_temp", "red", "green", "blue", "hue", "sat", "white",
    "white_value",
    "effect", "flash", "transition",
  ]
  private static let on = "command_on_template"

  static func read(_ reader: inout EntityReader) {
    guard let blocks = reader.text(on).flatMap({ TemplateBlocks($0) }) else {
      return reader.report(
        "its \(on) cannot be translated: \(Excerpt.of(reader.text(on) ?? "", limit: 200))",
        .leftOut
      )
    }
    readBrightness(&reader, blocks)
    readColorTemperature(&reader, blocks)
    readColor(&reader, blocks)
    readEffect(&reader, blocks)
    // The last of a message wins, and what a lamp is switched to counts more than what a level
    // says.
    readPower(&reader, blocks)
    // Home Assistant turns a lamp on with each of them: "the template for on state changes".
    reader.implyPower()
    reader.merges = reader.properties.count > 1
    if payload(blocks, of: ["transition"])?.structure["transition"] == "$value" {
      reader.options = ["transition"]
    }
  }

  // MARK: - Power

  private static func readPower(_ reader: inout EntityReader, _ blocks: TemplateBlocks) {
    let off = "command_off_template"
    let words = [reader.text(on), reader.text(off)].map { template in
      template.flatMap { TemplateBlocks($0) }.flatMap { word($0) }
    }
    guard let turningOn = words[0], let turningOff = words[1], turningOn != turningOff else {
      let key = words[0] == nil ? on : off
      return reader.report(
        "power: its \(key) cannot be translated: \(Excerpt.of(reader.text(key) ?? "", limit: 200))",
        .leftOut
      )
    }
    var power = ImportedProperty("power", type: "boolean")
    var payload = JSONValue.string(PayloadTemplate.placeholder)
    var (isOn, isOff) = (JSONValue.string(turningOn), JSONValue.string(turningOff))
    if let difference = PayloadDifference(turningOn, turningOff) {
      (payload, isOn, isOff) = (difference.structure, difference.first, difference.second)
    }
    guard isOn.isWord, isOff.isWord, !isOn.isSameScalar(as: isOff) else {
      return reader.report(
        "power: its payloads for on and off are not two different words",
        .leftOut
      )
    }
    if isOn != true { power["on"] = isOn }
    if isOff != false { power["off"] = isOff }
    let path = statePath(of: &power, &reader)
    reader.add(power, payload: payload, at: path)
  }

  /// What a template consists of where no variable is defined but the state; `nil` if it needs
  /// another.
  private static func word(_ blocks: TemplateBlocks) -> String? {
    guard let rest = blocks.resolved(defined: ["state"], of: variables) else { return nil }
    var text = ""
    for node in rest.nodes {
      switch node {
      case .text(let part): text += part
      case .expression(let expression):
        guard let standard = standard(of: expression) else { return nil }
        text += standard
      case .choice: return nil
      }
    }
    text = text.trimmedSpace
    return text.isEmpty ? nil : text
  }

  private static func statePath(
    of power: inout ImportedProperty,
    _ reader: inout EntityReader
  ) -> [String]? {
    guard let template = reader.text("state_template") else { return nil }
    switch TemplateForm.reading(template) {
    case .linear(let path, 1, 0): return path
    case .condition(let path, let constant, let then, let otherwise)
    where Set([then, otherwise]) == ["on", "off"] && constant.double == nil:
      // The other word is what says the opposite.
      if let flag = ValueKind.flag(constant), flag == (then == "on") { return path }
    case .lookedUp(let path, let table):
      let (on, off) = (table.filter { $0.value == "on" }, table.filter { $0.value == "off" })
      if on.count == 1, off.count == 1 {
        power["decode"] = .object(["on": .string(on[0].name), "off": .string(off[0].name)])
        return path
      }
    case .linear, .condition, .presence, .structure, .number, .text, .table, nil: break
    }
    reportState(of: power.id, "state_template", &reader)
    return nil
  }

  // MARK: - Levels and colors

  private static func readBrightness(_ reader: inout EntityReader, _ blocks: TemplateBlocks) {
    guard reader.config["brightness_template"] != nil || uses("brightness", blocks) else { return }
    var range = NumberRange(low: 0, high: 255, step: 1)
    range.unit = nil
    guard case .success(let property) = range.property("brightness", report: { _ in }) else {
      return
    }
    add(property, of: "brightness", state: "brightness_template", &reader, blocks)
  }

  private static func readColorTemperature(
    _ reader: inout EntityReader,
    _ blocks: TemplateBlocks
  ) {
    guard reader.config["color_temp_template"] != nil || uses("color_temp", blocks),
      let property = LightEntity.colorTemperature(&reader)
    else { return }
    add(property, of: "color_temp", state: "color_temp_template", &reader, blocks)
  }

  private static func readEffect(_ reader: inout EntityReader, _ blocks: TemplateBlocks) {
    guard reader.config["effect_list"] != nil, uses("effect", blocks),
      let property = reader.choice("effect", "effect_list")
    else { return }
    add(property, of: "effect", state: "effect_template", &reader, blocks)
  }

  private static func add(
    _ property: ImportedProperty,
    of variable: String,
    state key: String,
    _ reader: inout EntityReader,
    _ blocks: TemplateBlocks
  ) {
    var property = property
    guard let found = payload(blocks, of: [variable]),
      let payload = property.payload(of: found.form)
    else { return reportCommand(of: property.id, &reader) }
    var path: [String]?
    if let template = reader.text(key) {
      path = property.path(of: TemplateForm.reading(template))
      if path == nil { reportState(of: property.id, key, &reader) }
    }
    reader.add(property, payload: payload, at: path)
  }

  private static func readColor(_ reader: inout EntityReader, _ blocks: TemplateBlocks) {
    let forms: [(encoding: String, parts: [String: String])] = [
      ("rgb", ["red": "$value/r", "green": "$value/g", "blue": "$value/b"]),
      ("hs", ["hue": "$value/h", "sat": "$value/s"]),
    ]
    let used = forms.filter { form in form.parts.keys.contains { uses($0, blocks) } }
    guard !used.isEmpty else { return }
    for form in used {
      guard let text = text(blocks, of: Set(form.parts.keys)),
        let payload = ColorTemplate.object(text.filter { !$0.isWhitespace }, parts: form.parts)
      else { continue }
      var color = ImportedProperty("color", type: "color")
      color["encode"] = .string(form.encoding)
      var path: [String]?
      let keys = ["red_template", "green_template", "blue_template"]
      let templates = keys.compactMap { reader.text($0) }
      if !templates.isEmpty {
        path = ColorTemplate.rgbState(templates.joined(separator: ","))?.path
        if path == nil { reportState(of: "color", keys[0], &reader) }
      }
      return reader.add(color, payload: payload, at: path)
    }
    reportCommand(of: "color", &reader)
  }

  // MARK: - Templates

  /// Whether a template has something for a variable.
  private static func uses(_ variable: String, _ blocks: TemplateBlocks) -> Bool {
    let with = blocks.resolved(defined: ["state", variable], of: variables)
    // A color needs all of its channels.
    let all = blocks.resolved(defined: variables, of: variables)
    return [with, all].contains { found in
      found?.nodes.contains { node in
        guard case .expression(let text) = node else { return false }
        return text.split { !($0.isLetter || $0.isNumber || $0 == "_") }.contains { $0 == variable }
      } ?? false
    }
  }

  /// The text of a command for `defined`, with an expression for each of them.
  private static func text(_ blocks: TemplateBlocks, of defined: Set<String>) -> String? {
    guard let rest = blocks.resolved(defined: defined.union(["state"]), of: variables) else {
      return nil
    }
    var text = ""
    for node in rest.nodes {
      switch node {
      case .text(let part): text += part
      case .expression(let expression):
        let names = expression.split { !($0.isLetter || $0.isNumber || $0 == "_") }
        if names.contains(where: { defined.contains(String($0)) }) {
          text += "{{\(expression)}}"
        } else if let standard = standard(of: expression) {
          text += standard
        } else {
          return nil
        }
      case .choice: return nil
      }
    }
    return text.trimmedSpace
  }

  /// A command with a value of one variable.
  private static func payload(
    _ blocks: TemplateBlocks,
    of defined: Set<String>
  ) -> (form: TemplateForm, structure: JSONValue)? {
    guard let text = text(blocks, of: defined),
      let form = TemplateForm.making(text, of: defined)
    else { return nil }
    if case .structure(let structure, _, _, _) = form { return (form, structure) }
    return (form, .null)
  }

  /// What an expression for a variable that is not defined stands for: the constant in
  /// `NAME | default(CONSTANT)`.
  private static func standard(of expression: String) -> String? {
    let parts = expression.split(separator: "|", maxSplits: 1).map { $0.trimmedSpace }
    if parts == ["state"] { return nil }
    guard parts.count == 2, variables.contains(parts[0]), !parts[1].contains("|") else {
      return nil
    }
    for name in ["default", "d"] {
      if parts[1] == name { return "" }
      guard parts[1].hasPrefix("\(name)("), parts[1].hasSuffix(")") else { continue }
      let constant = parts[1].dropFirst(name.count + 1).dropLast().trimmedSpace
      guard let quote = constant.first, quote == "'" || quote == "\"" else {
        return NumberText.parse(constant).map { _ in constant }
      }
      return constant.last == quote ? String(constant.dropFirst().dropLast()) : nil
    }
    return nil
  }

  private static func reportCommand(of id: String, _ reader: inout EntityReader) {
    reader.report(
      "\(id): its \(on) cannot be translated: \(Excerpt.of(reader.text(on) ?? "", limit: 200))",
      .leftOut
    )
  }

  private static func reportState(of id: String, _ key: String, _ reader: inout EntityReader) {
    reader.report(
      "\(id): without a state, as its \(key) cannot be translated: "
        + Excerpt.of(reader.text(key) ?? "", limit: 80)
    )
  }
}

/// The one scalar by which two JSON objects of the same structure differ.
struct PayloadDifference {
  /// The structure, with `$value` in its place.
  private(set) var structure: JSONValue = .null
  private(set) var first: JSONValue = .null
  private(set) var second: JSONValue = .null
  private var count = 0

  /// Compares two payloads; `nil` if they are no such objects.
  init?(_ first: String, _ second: String) {
    guard let left = try? Announcement(topic: "", text: first).json().get(),
      let right = try? Announcement(topic: "", text: second).json().get(),
      left.members != nil, let found = compare(left, right), count == 1
    else { return nil }
    structure = found
  }

  private mutating func compare(_ left: JSONValue, _ right: JSONValue) -> JSONValue? {
    if let members = left.members, let others = right.members {
      guard members.map(\.name) == others.map(\.name) else { return nil }
      var merged: [JSONValue.Member] = []
      for (member, other) in zip(members, others) {
        guard let value = compare(member.value, other.value) else { return nil }
        merged.append(JSONValue.Member(member.name, value))
      }
      return .object(merged)
    }
    if left == right {
      guard let text = left.string else { return left }
      return .string(PlaceholderText.escaped(text))
    }
    guard left.isWord, right.isWord else { return nil }
    (first, second) = (left, right)
    count += 1
    return .string(PayloadTemplate.placeholder)
  }
}
