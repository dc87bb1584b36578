// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// Entities with one value: switch, number, select, text, button, scene, lock and siren.
enum SingleValueEntity {
  static func readSwitch(_ reader: inout EntityReader) {
    reader.isSingle = true
    guard let power = reader.boolean("power") else { return }
    reader.add(power, by: TopicKeys())
    reader.decodeLast(onKey: "state_on", offKey: "state_off")
  }

  static func readNumber(_ reader: inout EntityReader) {
    reader.isSingle = true
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
      reader.skipTopics(["state_topic"])
    }
  }

  static func readLock(_ reader: inout EntityReader) {
    reader.isSingle = true
    let lock = reader.boolean(
      "lock",
      on: "payload_lock",
      off: "payload_unlock",
      standard: ("LOCK", "UNLOCK")
    )
    guard let lock else { return }
    reader.add(lock, by: TopicKeys())
    let locked = reader.payload("state_locked", else: "LOCKED") ?? "LOCKED"
    let unlocked = reader.payload("state_unlocked", else: "UNLOCKED") ?? "UNLOCKED"
    let isSame =
      locked.isSameScalar(as: lock["on"] ?? true) && unlocked.isSameScalar(as: lock["off"] ?? false)
    if !isSame { reader.decodeLast(on: locked, off: unlocked) }
  }

  static func readSiren(_ reader: inout EntityReader) {
    reader.isSingle = true
    guard let power = reader.boolean("power") else { return }
    guard reader.config["command_template"] == nil else {
      return reader.add(power, by: TopicKeys())
    }
    reader.add(power, member: "state")
  }
}
