// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Sirens: on and off, with a tone, a duration and a volume that turn it on.
enum SirenEntity {
  private static let stateTemplate = "state_value_template"

  /// What Home Assistant sends without a template.
  private static let standard = #"""
    {"state": {{ value | to_json }}{% if tone is defined %}, "tone": {{ tone | to_json }}{% endif %}
    {%- if duration is defined %}, "duration": {{ duration }}{% endif %}
    {%- if volume_level is defined %}, "volume_level": {{ volume_level }}{% endif %}}
    """#

  static func read(_ reader: inout EntityReader) {
    guard let power = reader.boolean("power") else { return }
    let words = power.words.map { TemplateValue.text(TemplateValue($0.wire).written) }
    let (text, template) =
      reader.template("command_template") ?? (standard, try? Template(standard))
    let ending = reader.template("command_off_template") ?? (text, template)
    guard let turningOn = template?.rendered(["value": words[0], "state": words[0]]),
      let turningOff = ending.template?.rendered(["value": words[1], "state": words[1]]),
      !turningOn.isEmpty, !turningOff.isEmpty
    else { return reader.reportCommand("power", "command_template", text) }
    let meaning = reader.meaning(of: power, on: "state_on", off: "state_off")
    guard
      reader.add(
        power: power,
        on: turningOn,
        off: turningOff,
        reportedBy: stateTemplate,
        meaning
      )
    else { return }
    addReports(&reader, of: "state", isBare: true)
    if reader.config[stateTemplate] == nil {
      reader.changeLast { property in
        _ = Template.plain.flatMap { property.path(of: ReportTemplate($0), meaning) }
      }
    }
    for (name, property) in options(&reader) {
      guard let template,
        template.rendered(["value": words[0], "state": words[0], name: .integer(1)]) != turningOn
      else { continue }
      var property = property
      let command = CommandTemplate(template: template) {
        ["value": words[0], "state": words[0], name: $0]
      }
      guard let payload = property.payload(of: command) else {
        reader.reportCommand(property.id, "command_template", text)
        continue
      }
      reader.add(property, payload: payload, reportedBy: "", StateMeaning(property))
      addReports(&reader, of: name, isBare: false)
    }
    reader.isSingle = reader.properties.count == 1
    reader.implyPower()
    reader.merges = PayloadShape.json(turningOn) != nil && reader.properties.count > 1
  }

  /// What a siren accepts, by the names of the variables and members.
  private static func options(_ reader: inout EntityReader) -> [(String, ImportedProperty)] {
    var options: [(String, ImportedProperty)] = []
    if reader.config["available_tones"] != nil, let tone = reader.choice("tone", "available_tones")
    {
      options.append(("tone", tone))
    }
    if reader.config["support_duration"] != false {
      var duration = ImportedProperty("duration", type: "integer")
      duration["range"] = [1, 86400]
      duration["unit"] = "s"
      options.append(("duration", duration))
    }
    if reader.config["support_volume_set"] != false {
      let volume = ImportedProperty("volume", type: "number", ["range": [0, 1]])
      options.append(("volume_level", volume))
    }
    return options
  }

  /// Reads the last property from JSON, or from a word, where there is no template of the state.
  private static func addReports(_ reader: inout EntityReader, of name: String, isBare: Bool) {
    guard reader.config[stateTemplate] == nil, let topic = reader.topic("state_topic") else {
      return
    }
    let bare = JSONValue.object(["topic": .string(topic)])
    let source = JSONValue.object(["topic": .string(topic), "value": .string("/\(name)")])
    reader.changeLast { $0["state"] = isBare ? .array([source, bare]) : source }
  }
}

/// Fans.
enum FanEntity {
  static func read(_ reader: inout EntityReader) {
    if reader.config["command_topic"] != nil, let power = reader.boolean("power") {
      reader.add(power, by: TopicKeys(stateTemplate: "state_value_template"))
    }
    if reader.config["percentage_command_topic"] != nil {
      let speed = reader.number(
        "speed",
        low: ("speed_range_min", 1),
        high: ("speed_range_max", 100),
        unit: reader.number("speed_range_max") == nil ? "%" : Optional.none
      )
      if let speed { reader.add(speed, by: TopicKeys("percentage")) }
    }
    readPreset(&reader)
    if reader.config["oscillation_command_topic"] != nil {
      let swing = reader.boolean(
        "oscillation",
        on: "payload_oscillation_on",
        off: "payload_oscillation_off",
        standard: ("oscillate_on", "oscillate_off")
      )
      if let swing { reader.add(swing, by: TopicKeys("oscillation")) }
    }
    if reader.config["direction_command_topic"] != nil {
      var direction = ImportedProperty("direction", type: "choice")
      direction["values"] = ["forward", "reverse"]
      reader.add(direction, by: TopicKeys("direction"))
    }
  }

  static func readPreset(_ reader: inout EntityReader) {
    guard reader.config["preset_mode_command_topic"] != nil,
      let preset = reader.choice("preset", "preset_modes")
    else { return }
    reader.add(preset, by: TopicKeys("preset_mode"))
  }
}

/// Vacuum cleaners, whose reports are JSON.
enum VacuumEntity {
  static func read(_ reader: inout EntityReader) {
    let command = reader.action(
      "command",
      [
        ("start", "payload_start", "start"), ("pause", "payload_pause", "pause"),
        ("stop", "payload_stop", "stop"),
        ("return_to_base", "payload_return_to_base", "return_to_base"),
        ("clean_spot", "payload_clean_spot", "clean_spot"), ("locate", "payload_locate", "locate"),
      ]
    )
    let bare = JSONValue.string(PayloadTemplate.placeholder)
    if let command { reader.add(command, payload: bare, at: Optional.none) }
    if reader.config["set_fan_speed_topic"] != nil,
      let speed = reader.choice("fan_speed", "fan_speed_list")
    {
      reader.add(speed, payload: bare, command: "set_fan_speed_topic", at: ["fan_speed"])
    }
    guard let topic = reader.topic("state_topic") else { return }
    var state = ImportedProperty("state", type: "choice")
    state["values"] = ["idle", "docked", "error", "paused", "returning", "cleaning"]
    state.setState(on: topic, at: "/state")
    reader.add(known: state)
  }
}
