// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

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
