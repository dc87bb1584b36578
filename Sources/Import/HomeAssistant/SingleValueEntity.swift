// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// Entities with one value: switch, number, select, text, button, scene and lock.
enum SingleValueEntity {
  static func readSwitch(_ reader: inout EntityReader) {
    reader.isSingle = true
    guard let power = reader.boolean("power") else { return }
    let meaning = reader.meaning(of: power, on: "state_on", off: "state_off")
    reader.add(power, by: TopicKeys(meaning: meaning))
  }

  static func readNumber(_ reader: inout EntityReader) {
    reader.isSingle = true
    if let only = reader.number("min"), only == reader.number("max") {
      // Nothing can be set, but the number is reported.
      var value = ImportedProperty("value", type: "number")
      value["unit"] = reader.text("unit_of_measurement").map {
        .string(PlainText.clean($0, limit: 20))
      }
      reader.skip(["command_topic", "command_template"])
      return reader.add(reading: value)
    }
    let value = reader.number(
      "value",
      low: ("min", 1),
      high: ("max", 100),
      step: ("step", 1),
      unit: reader.text("unit_of_measurement")
    )
    if let value { reader.add(value, by: TopicKeys()) }
  }

  static func readSelect(_ reader: inout EntityReader) {
    reader.isSingle = true
    if let value = reader.choice("value", "options") { reader.add(value, by: TopicKeys()) }
  }

  static func readText(_ reader: inout EntityReader) {
    reader.isSingle = true
    guard reader.text("mode") != "password" else {
      reader.report("a password, which its target would show to everybody", .leftOut)
      return
    }
    reader.add(ImportedProperty("value", type: "text"), by: TopicKeys())
  }

  static func readAction(
    _ reader: inout EntityReader,
    _ id: String,
    _ word: (word: String, key: String, standard: JSONValue)
  ) {
    reader.isSingle = true
    if let property = reader.action(id, [word]) {
      reader.add(property, by: TopicKeys())
      // Some programs announce one, which says whether they are there.
      reader.skip(["state_topic"])
    }
  }

  static func readLock(_ reader: inout EntityReader) {
    reader.isSingle = reader.config["payload_open"] == nil
    let lock = reader.boolean(
      "lock",
      on: "payload_lock",
      off: "payload_unlock",
      standard: ("LOCK", "UNLOCK")
    )
    if let lock {
      let meaning = reader.meaning(
        of: lock,
        on: "state_locked",
        off: "state_unlocked",
        standard: ("LOCKED", "UNLOCKED")
      )
      reader.add(lock, by: TopicKeys(meaning: meaning))
    }
    // The latch, which is no state.
    guard reader.config["payload_open"] != nil,
      let open = reader.action("open", [("OPEN", "payload_open", .null)])
    else { return }
    reader.add(open, by: TopicKeys())
  }
}
