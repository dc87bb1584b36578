// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Operations
import Testing
import Values

/// Announcements with templates of public programs, each imported and compared with Jinja itself.
///
/// `templates.jsonl` were at hand when the evaluator was written; `templates-heldout.jsonl` were not
/// looked at before. A line names the program and the file that announces the entity.
struct TemplateCorpusTests {
  /// One template of an announcement, and what became of it.
  private struct Case {
    var program: String
    var entity: String
    var key: String
    var text: String
    var outcome: Outcome = .listed
    var comparison: Comparison?
  }

  private enum Outcome { case translated, listed, silent }

  /// What is compared with Jinja.
  private struct Comparison {
    var request: JSONValue
    var isSame: (JSONValue) -> String?
  }

  @Test(arguments: [("templates.jsonl", 87), ("templates-heldout.jsonl", 80)])
  func `templates are translated as Jinja renders them, or listed`(file: String, floor: Int) throws
  {
    var cases: [Case] = []
    for line in try Fixture.text(file).split(separator: "\n") {
      cases += try Self.cases(in: Announcement(topic: "", text: String(line)).json())
    }
    let checked = cases.indices.filter { cases[$0].comparison != nil }
    let requests = checked.compactMap { cases[$0].comparison.map { JSONWriter.text($0.request) } }
    let answers = try Self.answers(to: requests)
    try #require(answers.count == requests.count)
    for (place, answer) in zip(checked, answers) {
      guard let problem = cases[place].comparison?.isSame(answer) else { continue }
      Issue.record("\(cases[place].program), \(cases[place].key): \(problem): \(cases[place].text)")
    }
    for item in cases where item.outcome == .silent {
      Issue.record(
        "\(item.program): \(item.entity): \(item.key) is neither used nor listed: \(item.text)"
      )
    }
    let translated = cases.count { $0.outcome == .translated }
    let share = 100 * translated / max(1, cases.count)
    print(
      "\(file): \(cases.count) templates of \(Set(cases.map(\.program)).count) programs,",
      "\(translated) translated, \(cases.count - translated) listed, \(checked.count) compared"
    )
    for item in cases where item.outcome == .listed {
      print("  listed: \(item.program.prefix(24)) \(item.entity) \(item.key): \(item.text)")
    }
    #expect(share >= floor)
    #expect(checked.count == translated)
  }

  private static func answers(to requests: [String]) throws -> [JSONValue] {
    let folder = try TemporaryFolder.make("settle-jinja")
    defer { TemporaryFolder.remove(folder) }
    try TextFile.write(requests.joined(separator: "\n") + "\n", to: "\(folder)/requests")
    let script = "\(Fixture.folder)/jinja.py"
    let run = try ProgramRun(["/usr/bin/env", "python3", script, "\(folder)/requests"], in: folder)
    try #require(run.code == 0, "\(run.errors)")
    return try run.output.split(separator: "\n").map {
      try Announcement(topic: "", text: String($0)).json()
    }
  }

  // MARK: - Cases

  private static func cases(in line: JSONValue) throws -> [Case] {
    let program = line["program"]?.string ?? ""
    let component = line["component"]?.string ?? ""
    let announced = Abbreviations.expanded(line["config"] ?? .null)
    let device: JSONValue = .object(["identifiers": "d", "name": "x"])
    let kept = (announced.members ?? []).filter { !["name", "device"].contains($0.name) }
    let config = JSONValue.object(kept + [.init("name", "x"), .init("device", device)])
    let plan = try Fixture.plan(
      [
        Announcement(
          topic: "homeassistant/\(component)/value/config",
          text: JSONWriter.text(config)
        )
      ]
    ) { $0.includesDiagnostic = true }
    let reasons = plan.diagnostics.map { "\($0.subject): \($0.reason)" }
    let devices = try plan.files.first.map { try Loaded.devices(["a.yaml": $0.text]) } ?? []
    let entity = CorpusEntity(component: component, config: config, device: devices.first)
    var cases: [Case] = []
    func add(_ key: String, _ text: String, in config: JSONValue) {
      var item = Case(program: program, entity: component, key: key, text: text)
      let isAvailability = config["topic"] != nil || key == "availability_template"
      let isListed = reasons.contains { reason in
        isAvailability
          ? reason.contains("availability")
          : reason.contains("its \(key) cannot") || reason.contains("not imported: \(key):")
      }
      if devices.isEmpty || isListed {
        item.outcome = reasons.isEmpty ? .silent : .listed
      } else if let comparison = entity.comparison(key, text, in: config) {
        item.outcome = .translated
        item.comparison = Comparison(request: comparison.request, isSame: comparison.problem)
      } else {
        // A state that would be reported to the gateway by itself is listed with its topic.
        let isEcho = reasons.contains { $0.contains("is also the topic of its commands") }
        item.outcome = isEcho ? .listed : .silent
      }
      cases.append(item)
    }
    for member in config.members ?? [] {
      if let text = member.value.string, member.name.hasSuffix("_template") {
        add(member.name, text, in: config)
      }
    }
    for source in config.elements("availability") ?? [] {
      if let text = source["value_template"]?.string { add("value_template", text, in: source) }
    }
    return cases
  }
}

/// An imported entity, and what Home Assistant does with its templates.
private struct CorpusEntity {
  let component: String
  let config: JSONValue
  let device: Device?

  /// A request to Jinja, and what is wrong with its answer.
  typealias Check = (request: JSONValue, problem: (JSONValue) -> String?)

  private func number(_ key: String, _ standard: Double) -> Double {
    config[key]?.double ?? standard
  }

  private func word(_ keys: [String], _ standard: String) -> String {
    keys.compactMap { config[$0].map { TemplateValue($0).written } }.first ?? standard
  }

  func comparison(_ key: String, _ text: String, in source: JSONValue) -> Check? {
    if source["topic"] != nil || key == "availability_template" {
      return availability(key, text, source)
    }
    if ["command_on_template", "command_off_template"].contains(key) { return light(key, text) }
    let id = Self.property(key, of: component)
    let found = device?.properties.first { $0.id == id }
    let position = device?.properties.first { component == "valve" && $0.id == "position" }
    guard let property = found ?? position else { return nil }
    if key.contains("command_template") || key == "set_position_template" {
      return command(property, key, text)
    }
    return report(property, key, text)
  }

  /// The property that a template belongs to.
  private static func property(_ key: String, of component: String) -> String {
    if ["cover", "valve"].contains(component), key == "value_template" { return "state" }
    let single = [
      "switch": "power", "lock": "lock", "light": "power", "fan": "power", "siren": "power",
      "humidifier": "power", "button": "press", "scene": "activate",
    ]
    if component == "update", key == "value_template" { return "installed_version" }
    let stem = ["_command_template", "_value_template", "_state_template", "_template"].reduce(key)
    {
      $0.hasSuffix($1) ? String($0.dropLast($1.count)) : $0
    }
    switch stem {
    case "command", "value", "state", "state_value": return single[component] ?? "value"
    case "rgb", "hs", "red", "green", "blue": return "color"
    case "temperature", "temperature_high", "temperature_low": return "target_\(stem)"
    case "preset_mode": return "preset"
    case "percentage": return "speed"
    case "set_position": return "position"
    case "tilt_status": return "tilt"
    default: return stem
    }
  }

  // MARK: - Commands

  private func command(_ property: Property, _ key: String, _ text: String) -> Check {
    let values = probes(of: property)
    let variables = values.map { value -> JSONValue in
      switch value {
      case .color(let color):
        let (rgb, hsb) = (color.rgb, color.hsb)
        return .object([
          "red": .integer(Int64(rgb.red)), "green": .integer(Int64(rgb.green)),
          "blue": .integer(Int64(rgb.blue)), "hue": .number(hsb.hue),
          "sat": .number(hsb.saturation),
        ])
      case .number(let number):
        let isTilt = property.id == "tilt"
        guard isTilt || property.id == "position" else {
          return .object(["value": JSONValue(shortest: number)])
        }
        let low = self.number(isTilt ? "tilt_min" : "position_closed", 0)
        let high = self.number(isTilt ? "tilt_max" : "position_open", 100)
        let ranged = low + number * (high - low) / 100
        return .object([
          "value": JSONValue(shortest: ranged.rounded(.toNearestOrEven)),
          isTilt ? "tilt_position" : "position": JSONValue(shortest: number),
        ])
      case .boolean(let flag): return .object(["value": .string(announced(property, flag))])
      case .text(let text): return .object(["value": .string(text)])
      }
    }
    let sent = values.map { value in
      var bytes: [UInt8] = []
      property.command.payload.render(property.wireValue(of: value), into: &bytes)
      return String(decoding: bytes, as: UTF8.self)
    }
    return (
      .object(["template": .string(text), "values": .array(variables)]),
      { answer in
        for (sent, made) in zip(sent, answer.elements("results") ?? []) {
          guard let made = made.string, Self.isSame(sent, made) else {
            return "sends \(sent) where Jinja makes \(JSONWriter.text(made))"
          }
        }
        return nil
      }
    )
  }

  /// The payload that Home Assistant gives to a template for on or off.
  private func announced(_ property: Property, _ isOn: Bool) -> String {
    switch property.id {
    case "lock": return word([isOn ? "payload_lock" : "payload_unlock"], isOn ? "LOCK" : "UNLOCK")
    case "oscillation":
      return word(
        [isOn ? "payload_oscillation_on" : "payload_oscillation_off"],
        isOn ? "oscillate_on" : "oscillate_off"
      )
    default: return word([isOn ? "payload_on" : "payload_off"], isOn ? "ON" : "OFF")
    }
  }

  private func probes(of property: Property) -> [Value] {
    switch property.kind {
    case .boolean: return [.boolean(true), .boolean(false)]
    case .choice(let words), .action(let words): return words.map { .text($0) }
    case .text: return ["abc", "Hallo Welt", "12.30"].map { .text($0) }
    case .color:
      return [(255, 128, 0), (1, 2, 3), (0, 255, 0)].map {
        .color(.rgb(red: $0.0, green: $0.1, blue: $0.2))
      }
    case .number(let rule), .integer(let rule):
      guard let range = rule.range else { return [-3, 0, 1, 50, 1000].map { .number($0) } }
      let span = range.upperBound - range.lowerBound
      return (0...20).map { .number(rule.snapped(range.lowerBound + span * Double($0) / 20)) }
    }
  }

  /// Whether two payloads mean the same: equal texts, numbers but for rounding, or equal JSON.
  private static func isSame(_ sent: String, _ made: String) -> Bool {
    // OpenBeken takes a color without the two white channels too.
    if sent == made || sent.hasPrefix("#") && made == sent + "0000" { return true }
    if let left = NumberText.parse(sent), let right = NumberText.parse(made) {
      return isSame(left, right)
    }
    guard let left = PayloadShape.json(sent), let right = PayloadShape.json(made) else {
      return false
    }
    return isSame(left, right)
  }

  private static func isSame(_ left: JSONValue, _ right: JSONValue) -> Bool {
    if let left = left.double, let right = right.double { return isSame(left, right) }
    if let left = left.elements, let right = right.elements {
      return left.count == right.count && zip(left, right).allSatisfy { isSame($0, $1) }
    }
    if let members = left.members, let others = right.members {
      return members.count == others.count
        && members.allSatisfy { member in
          right[member.name].map { isSame(member.value, $0) } ?? false
        }
    }
    if let left = left.string, let right = right.string, let one = NumberText.parse(left),
      let other = NumberText.parse(right)
    {
      return isSame(one, other)
    }
    return left == right
  }

  /// A tie, and what is a tie or whole but for the last bits, may be rounded to either side.
  private static func isSame(_ left: Double, _ right: Double) -> Bool {
    (left - right).magnitude <= 1e-6 * max(1, right.magnitude)
      || left == left.rounded() && right == right.rounded() && (left - right).magnitude == 1
  }

  /// The commands of lights with the schema `template`, one property at a time.
  private func light(_ key: String, _ text: String) -> Check? {
    guard let device else { return nil }
    var variables: [JSONValue] = []
    var sent: [String] = []
    for property in device.properties where !property.isReadOnly {
      for value in probes(of: property) {
        var members: [JSONValue.Member] = [.init("state", .boolean(key == "command_on_template"))]
        switch value {
        case .boolean(let flag) where flag != (key == "command_on_template"): continue
        case .boolean: break
        default:
          guard key == "command_on_template" else { continue }
          let own = command(property, key, text).request.elements("values") ?? []
          let place = probes(of: property).firstIndex(of: value) ?? 0
          for member in own[place].members ?? [] {
            members.append(.init(member.name == "value" ? property.id : member.name, member.value))
          }
        }
        // A brightness of 0 turns the lamp off.
        if value == .number(0), !property.implies.isEmpty { continue }
        variables.append(.object(members))
        var bytes: [UInt8] = []
        property.command.payload.render(property.wireValue(of: value), into: &bytes)
        sent.append(String(decoding: bytes, as: UTF8.self))
      }
    }
    guard !sent.isEmpty else { return nil }
    return (
      .object(["template": .string(text), "values": .array(variables)]),
      { answer in
        for (sent, made) in zip(sent, answer.elements("results") ?? []) {
          guard let made = made.string, Self.isSame(sent, made) else {
            return "sends \(sent) where Jinja makes \(JSONWriter.text(made))"
          }
        }
        return nil
      }
    )
  }

  // MARK: - Reports

  private func availability(_ key: String, _ text: String, _ source: JSONValue) -> Check? {
    guard
      let availability = device?.availability.first(where: {
        $0.topic == source["topic"]?.string || key == "availability_template"
      })
    else { return nil }
    let on = (source["payload_available"] ?? "online").scalarText ?? ""
    let off = (source["payload_not_available"] ?? "offline").scalarText ?? ""
    return (
      request(text, words: [on, off], isColor: false),
      { answer in
        let unknown = answer.elements("unknown") ?? []
        for sample in answer.elements("samples") ?? [] {
          guard let made = sample["result"]?.string, made == on || made == off else { continue }
          let shown = availability.isOnline(in: Self.document(sample))
          let isNamed = sample["compared"] == true
          if shown == nil, !isNamed { continue }
          if unknown.contains(.string(made)), !isNamed { continue }
          if shown != (made == on) {
            return "\(JSONWriter.text(sample)) is shown as \(shown as Bool?)"
          }
        }
        return nil
      }
    )
  }

  private func request(_ text: String, words: [String], isColor: Bool) -> JSONValue {
    var variables: [JSONValue.Member] = []
    for (name, standard) in [
      ("position_open", 100.0), ("position_closed", 0), ("tilt_min", 0), ("tilt_max", 100),
    ] { variables.append(.init(name, JSONValue(shortest: number(name, standard)))) }
    return .object([
      "template": .string(text), "words": .array(words.map { .string($0) }),
      "color": .boolean(isColor), "variables": .object(variables),
    ])
  }

  private static func document(_ sample: JSONValue) -> JSONValue {
    let text = sample["payload"]?.string ?? ""
    return (try? Announcement(topic: "", text: text).json()) ?? .string(text)
  }

  /// The value that Home Assistant has for the result of a state's template.
  private func value(_ made: String, of property: Property, _ key: String) -> Value? {
    switch property.kind {
    case .boolean:
      var (on, off) = (announced(property, true), announced(property, false))
      if property.id == "lock" {
        (on, off) = (word(["state_locked"], "LOCKED"), word(["state_unlocked"], "UNLOCKED"))
      } else if ["switch", "siren"].contains(component) {
        (on, off) = (word(["state_on"], on), word(["state_off"], off))
      } else if config["schema"] == "template" {
        (on, off) = ("on", "off")
      }
      if made == on || on.lowercased() == "true" && made == "True" { return .boolean(true) }
      return made == off || off.lowercased() == "false" && made == "False" ? .boolean(false) : nil
    case .choice(let words):
      let announced = words.first {
        property.id == "state" && word(["state_\($0)"], $0) == made
      }
      return announced.map { .text($0) } ?? (words.contains(made) ? .text(made) : nil)
    case .text: return made.isEmpty ? nil : .text(made)
    case .color:
      let form: ColorEncoding = key.hasPrefix("hs") ? .commaHS : .commaRGB
      guard made.split(separator: ",").count == (form == .commaHS ? 2 : 3) else { return nil }
      return Color(wire: .string(made), encoding: form).map { .color($0) }
    case .number, .integer:
      guard let number = NumberText.parse(made) else { return nil }
      guard ["position", "tilt"].contains(property.id) else { return .number(number) }
      let isTilt = property.id == "tilt"
      let low = self.number(isTilt ? "tilt_min" : "position_closed", 0)
      let high = self.number(isTilt ? "tilt_max" : "position_open", 100)
      return .number((number - low) * 100 / (high - low))
    case .action: return nil
    }
  }

  private func report(_ property: Property, _ key: String, _ text: String) -> Check? {
    guard !property.states.isEmpty else { return nil }
    var words: [String] = []
    if case .choice(let own) = property.kind { words = own }
    if case .boolean = property.kind {
      words = [announced(property, true), announced(property, false)]
      for value in [property.wire.on, property.wire.off].compactMap({ $0?.scalarText }) {
        words.append(value)
      }
      for key in ["state_on", "state_off", "state_locked", "state_unlocked"] {
        if let word = config[key].map({ TemplateValue($0).written }) { words.append(word) }
      }
    }
    var text = text
    if property.kind == .color, key != "rgb_value_template", key != "hs_value_template" {
      text = ["red_template", "green_template", "blue_template"].compactMap { config[$0]?.string }
        .joined(separator: ",")
    }
    let isColor = property.kind == .color
    return (
      request(text, words: words, isColor: isColor),
      { answer in self.problem(answer, property, key) }
    )
  }

  private func problem(_ answer: JSONValue, _ property: Property, _ key: String) -> String? {
    let unknown = (answer.elements("unknown") ?? []).compactMap(\.string)
    var same = 0
    for sample in answer.elements("samples") ?? [] {
      var document = Self.document(sample)
      if property.wire.reportedFormat != nil, property.state?.value.isWhole == true {
        document = .string(sample["payload"]?.string ?? "")
      }
      let read = property.states.lazy.compactMap { source -> Value? in
        guard case .value(let wire) = source.reading(of: document) else { return nil }
        return property.value(fromWire: wire)
      }.first
      let made = sample["result"]?.string
      let meant = made.flatMap { value($0, of: property, key) }
      let isNamed = sample["compared"] == true
      switch (read, meant) {
      case (nil, nil): continue
      case (let read?, let meant?):
        if isNear(read, meant, property, made ?? "") {
          same += 1
        } else if property.kind != .color, isNamed || !unknown.contains(made ?? "") {
          return "\(JSONWriter.text(sample)) is read as \(read)"
        }
      case (let read?, nil):
        guard isNamed, made != nil else { continue }
        // What has another type in a report than in the template has no word.
        if case .number = read { return "\(JSONWriter.text(sample)) is read as \(read)" }
      case (nil, let meant?):
        guard isNamed, !unknown.contains(made ?? "") else { continue }
        return "\(JSONWriter.text(sample)) is not read, and is \(meant)"
      }
    }
    return same > 0
      ? nil : "no report is read as Jinja does: \(JSONWriter.text(answer).prefix(300))"
  }

  private func isNear(_ read: Value, _ meant: Value, _ property: Property, _ made: String) -> Bool {
    switch (read, meant) {
    case (.number(let read), .number(let meant)):
      // A template may round what the gateway shows as it is.
      let decimals = made.split(separator: ".").dropFirst().first?.count ?? 0
      let unit = (0..<decimals).reduce(1.0) { unit, _ in unit / 10 }
      var slack = unit
      if !property.isReadOnly, let scale = property.wire.scale {
        slack += (scale.slope ?? 1).magnitude + 0.5
      }
      // Home Assistant may cut off a report beyond the range.
      if let range = property.kind.numberRule?.range, !range.contains(read) { return true }
      return (read - meant).magnitude <= slack * (1 + 1e-6) + 1e-6 * meant.magnitude + 1e-8
    case (.color(let read), .color(let meant)): return read.rgb == meant.rgb
    case (.text(let read), .text(let meant)):
      if case .text = property.kind, let one = NumberText.parse(read),
        let two = NumberText.parse(meant)
      {
        return one == two || (one - two).magnitude <= 1
      }
      return read == meant
        || read.lowercased() == meant.lowercased() && ["true", "false"].contains(read)
    default: return read == meant
    }
  }
}
