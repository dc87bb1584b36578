// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// Covers and valves: a command, a position and a tilt.
enum CoverEntity {
  private static let policy: JSONValue = .object(["delay": "500ms", "max_wait": "none"])

  static func read(_ reader: inout EntityReader) {
    let isValve = reader.entity.platform == "valve"
    var keys = TopicKeys()
    keys.commandTemplate = Optional.none
    if isValve, reader.config["reports_position"] == true {
      addPosition(&reader, "position", by: keys)
      return
    }
    let words: [(word: String, key: String, standard: JSONValue)] = [
      ("OPEN", "payload_open", "OPEN"), ("CLOSE", "payload_close", "CLOSE"),
      ("STOP", "payload_stop", isValve ? .null : "STOP"),
    ]
    let present = words.filter { $0.standard != .null || reader.config[$0.key] != nil }
    if var command = reader.action("command", present) {
      let names = command["values"]?.elements?.compactMap(\.string)
      let urgent = names ?? command["values"]?.members?.map(\.name) ?? []
      command["urgent"] = .array(urgent.map { .string($0) })
      if urgent.contains("STOP") { command["aliases"] = ["stop"] }
      if reader.config["set_position_topic"] != nil { command["ends"] = ["position"] }
      reader.add(command, by: keys)
    }
    var position = TopicKeys()
    position.command = "set_position_topic"
    position.commandTemplate = "set_position_template"
    position.state = "position_topic"
    position.stateTemplate = "position_template"
    position.variables = ["value", "position"]
    if reader.config["set_position_topic"] != nil {
      addPosition(&reader, "position", by: position)
      // Open or closed is what the position says too.
      reader.skipTopics(["state_topic"])
    }
    addTilt(&reader)
  }

  private static func addTilt(_ reader: inout EntityReader) {
    guard reader.config["tilt_command_topic"] != nil else { return }
    var tilt = TopicKeys("tilt")
    tilt.state = "tilt_status_topic"
    tilt.stateTemplate = "tilt_status_template"
    tilt.variables = ["value", "tilt_position"]
    let made = reader.number(
      "tilt",
      low: ("tilt_min", 0),
      high: ("tilt_max", 100),
      step: Optional.none,
      unit: "%"
    )
    if var made {
      made["policy"] = policy
      reader.add(made, by: tilt)
      reader.allowMovementTime()
    }
  }

  /// Adds a position from 0 (closed) to 100 (open), scaled to the device's own range.
  private static func addPosition(_ reader: inout EntityReader, _ id: String, by keys: TopicKeys) {
    var range = NumberRange(low: 0, high: 100, step: 1)
    range.unit = "%"
    guard case .success(var position) = range.property(id, report: { _ in }) else { return }
    position["policy"] = policy
    let (open, closed) = (
      reader.number("position_open") ?? 100, reader.number("position_closed") ?? 0
    )
    let hasOwnScale = open != 100 || closed != 0
    if hasOwnScale, open != closed, reader.config["set_position_template"] == nil {
      position["scale"] = .object([
        "from": [0, 100],
        "to": .array([JSONValue(shortest: closed), JSONValue(shortest: open)]),
      ])
      var bare = keys
      bare.stateTemplate =
        reader.config["position_template"] == nil ? Optional.none : keys.stateTemplate
      reader.add(position, by: bare)
      if let last = reader.properties.indices.last, let topic = reader.topic(keys.state),
        bare.stateTemplate == nil
      {
        reader.replaceState(ofPropertyAt: last, topic: topic, pointer: "")
      }
    } else {
      reader.add(position, by: keys)
    }
    reader.allowMovementTime()
  }
}
