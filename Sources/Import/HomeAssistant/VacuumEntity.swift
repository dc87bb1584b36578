// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Vacuum cleaners.
enum VacuumEntity {
  static func read(_ reader: inout EntityReader) {
    var keys = TopicKeys()
    keys.commandTemplate = Optional.none
    let command = reader.action(
      "command",
      [
        ("start", "payload_start", "start"), ("pause", "payload_pause", "pause"),
        ("stop", "payload_stop", "stop"),
        ("return_to_base", "payload_return_to_base", "return_to_base"),
        ("clean_spot", "payload_clean_spot", "clean_spot"), ("locate", "payload_locate", "locate"),
      ]
    )
    if let command { reader.add(command, by: keys) }
    guard reader.config["set_fan_speed_topic"] != nil,
      var speed = reader.choice("fan_speed", "fan_speed_list")
    else { return }
    keys.command = "set_fan_speed_topic"
    keys.state = "state_topic"
    keys.stateTemplate = Optional.none
    speed["type"] = "choice"
    reader.add(speed, by: keys)
    if let last = reader.properties.indices.last, reader.properties[last]["state"] != nil,
      let topic = reader.topic("state_topic")
    {
      reader.replaceState(ofPropertyAt: last, topic: topic, pointer: "/fan_speed")
    }
  }
}
