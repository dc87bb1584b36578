// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// Covers and valves: a command, a position and a tilt.
enum CoverEntity {
  static func read(_ reader: inout EntityReader) {
    let isValve = reader.entity.platform == "valve"
    var keys = TopicKeys()
    if !isValve { keys.commandTemplate = Optional.none }
    if isValve, reader.config["reports_position"] == true {
      addPosition(&reader, by: keys)
      return acceptJSON(&reader)
    }
    let words: [(word: String, key: String, standard: JSONValue)] = [
      ("OPEN", "payload_open", "OPEN"), ("CLOSE", "payload_close", "CLOSE"),
      ("STOP", "payload_stop", isValve ? .null : "STOP"),
    ]
    let present = words.filter { $0.standard != .null || reader.config[$0.key] != nil }
    if var command = reader.action("command", present) {
      let urgent = command.words.map(\.word)
      command["urgent"] = .array(urgent.map { .string($0) })
      if urgent.contains("STOP") { command["aliases"] = ["stop"] }
      if reader.config["set_position_topic"] != nil { command["ends"] = ["position"] }
      reader.add(command, by: keys)
    }
    if reader.config["set_position_topic"] != nil || reader.config["position_topic"] != nil {
      keys.command = "set_position_topic"
      keys.commandTemplate = "set_position_template"
      keys.state = "position_topic"
      keys.stateTemplate = "position_template"
      addPosition(&reader, by: keys)
    }
    addState(&reader)
    if reader.config["tilt_command_topic"] != nil || reader.config["tilt_status_topic"] != nil {
      keys = TopicKeys("tilt")
      keys.state = "tilt_status_topic"
      keys.stateTemplate = "tilt_status_template"
      add(&reader, "tilt", "tilt_position", closed: "tilt_min", open: "tilt_max", by: keys)
    }
  }

  /// Adds whether a cover or valve is open, or moves.
  private static func addState(_ reader: inout EntityReader) {
    var words = ["open", "opening", "closed", "closing"]
    if reader.entity.platform == "cover" { words.append("stopped") }
    let reported = words.map { word in
      (word: word, wire: reader.payload("state_\(word)", else: .string(word)) ?? .string(word))
    }
    guard let values = ChoiceWords.field(reported) else { return }
    let state = ImportedProperty("state", type: "choice", ["values": values])
    var meaning = StateMeaning(state)
    meaning.words = reported.map { ($0.word, TemplateValue($0.wire).written) }
    reader.add(reading: state, meaning: meaning)
  }

  private static func addPosition(_ reader: inout EntityReader, by keys: TopicKeys) {
    add(&reader, "position", "position", closed: "position_closed", open: "position_open", by: keys)
  }

  /// Adds a property from 0 (closed) to 100 (open).
  ///
  /// Home Assistant converts it to the device's own range, which may be reversed, before the
  /// template of the command, whose `variable` is the percentage, and after that of the state.
  private static func add(
    _ reader: inout EntityReader,
    _ id: String,
    _ variable: String,
    closed closedKey: String,
    open openKey: String,
    by keys: TopicKeys
  ) {
    var range = NumberRange(low: 0, high: 100, step: 1)
    range.unit = "%"
    let (closed, open) = (reader.number(closedKey) ?? 0, reader.number(openKey) ?? 100)
    guard closed != open, var made = try? range.property(id, report: { _ in }) else {
      return reader.report("\(id): its range is a single value", .leftOut)
    }
    made["policy"] = .object(["delay": "500ms", "max_wait": "none"])
    var keys = keys
    keys.isConverted = closed != 0 || open != 100
    for (name, standard) in [
      ("position_open", 100.0), ("position_closed", 0), ("tilt_min", 0), ("tilt_max", 100),
    ] {
      keys.stateVariables[name] = TemplateValue(
        JSONValue(shortest: reader.number(name) ?? standard)
      )
    }
    keys.variables = { [constants = keys.stateVariables] percentage in
      let ranged = closed + (percentage.double ?? 0) * (open - closed) / 100
      let value = TemplateValue(JSONValue(shortest: ranged.rounded(.toNearestOrEven)))
      return constants.merging(["value": value, variable: percentage]) { $1 }
    }
    var meaning = StateMeaning(made)
    meaning.number = { ($0 - closed) * 100 / (open - closed) }
    keys.meaning = meaning
    reader.add(made, by: keys)
    reader.allowMovementTime()
  }

  /// Reads a position also from JSON, where a valve may report it without a template.
  private static func acceptJSON(_ reader: inout EntityReader) {
    guard reader.config["value_template"] == nil, let last = reader.properties.indices.last,
      let state = reader.properties[last]["state"]?.members
    else { return }
    let member = JSONValue.Member("value", "/position")
    reader.changeLast { $0["state"] = .array([.object(state + [member]), .object(state)]) }
  }
}
