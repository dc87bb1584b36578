// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
import Values

/// An ESPHome node with its MQTT component: `…/command` in, retained `…/state` out.
///
/// Parts have the names of their topics: `light/<object>`, `switch/<object>` and so on. A light
/// reports its target, a cover its current position.
package struct ESPHomeNode: WireConvention {
  package static let fullTravel = Duration.seconds(4)

  /// The topic prefix.
  package let topic: String

  package static func device(
    _ topic: String,
    parts: [String: [String: JSONValue]]
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(Self(topic: topic), parts: parts)
  }

  package static let light: [String: JSONValue] = [
    "state": "ON", "brightness": 100, "color_temp": 300,
  ]
  private static let lightMembers = ["state", "brightness", "color_temp", "color", "effect"]
  package static let relay: [String: JSONValue] = ["state": "OFF"]
  package static let lock: [String: JSONValue] = ["state": "UNLOCKED"]
  package static let cover: [String: JSONValue] = ["position": 0]
  package static let climate: [String: JSONValue] = ["target_temperature": 20, "mode": "heat"]
  package static let fan: [String: JSONValue] = ["state": "OFF", "speed_level": 1]

  package var subscriptions: [String] { ["\(topic)/+/+/command", "\(topic)/+/+/+/command"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(topic: "\(topic)/status", text: isOnline ? "online" : "offline", retain: true)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let levels = message.levels(below: topic), levels.count >= 3 else { return nil }
    let part = levels[0] + "/" + levels[1]
    guard memory.has(part) else { return nil }
    let word = message.text
    let changes: [DeviceChange]? =
      switch (levels[0], levels.count == 4 ? levels[2] : nil) {
      case ("light", nil): message.object.flatMap { light(part, $0) }
      case ("switch", nil), ("fan", nil): state(part, word, memory)
      case ("number", nil): DeviceChange.number(part, "value", message)
      case ("select", nil): [DeviceChange(part, "value", .set(.string(word)))]
      case ("lock", nil):
        ["LOCK": "LOCKED", "UNLOCK": "UNLOCKED"][word].map {
          [DeviceChange(part, "state", .set($0))]
        }
      case ("cover", nil), ("valve", nil):
        DeviceChange.cover(part, word, whole: Self.fullTravel)
      case ("cover", "position"), ("valve", "position"):
        DeviceChange.position(part, message, whole: Self.fullTravel)
      case ("cover", "tilt"): DeviceChange.number(part, "tilt", message)
      case ("climate", "target_temperature"):
        DeviceChange.number(part, "target_temperature", message)
      case ("climate", "mode"): [DeviceChange(part, "mode", .set(.string(word)))]
      case ("fan", "speed_level"): DeviceChange.number(part, "speed_level", message)
      default: nil
      }
    return changes.map { DeviceAnswer($0) } ?? .refused()
  }

  private func light(_ part: String, _ command: JSONValue) -> [DeviceChange]? {
    let changes = Self.lightMembers.compactMap { name in
      command[name].map { DeviceChange(part, name, .set($0)) }
    }
    return changes.isEmpty ? nil : changes
  }

  private func state(_ part: String, _ word: String, _ memory: DeviceMemory) -> [DeviceChange]? {
    switch word {
    case "ON", "OFF": return [DeviceChange(part, "state", .set(.string(word)))]
    case "TOGGLE":
      let isOn = memory.text(part, "state") == "ON"
      return [DeviceChange(part, "state", .set(isOn ? "OFF" : "ON"))]
    default: return nil
    }
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    func state(_ name: String, on path: String = "") -> DeviceMessage {
      DeviceMessage(
        topic: "\(topic)/\(part)\(path)/state",
        text: memory.text(part, name),
        retain: true
      )
    }
    switch part.prefix(while: { $0 != "/" }) {
    case "light":
      let members = memory.members(part, Self.lightMembers)
      return [
        DeviceMessage(topic: "\(topic)/\(part)/state", json: .object(members), retain: true)
      ]
    case "switch", "lock": return [state("state")]
    case "number", "select": return [state("value")]
    case "cover", "valve":
      let isClosed = memory.number(part, "position") < 0.5
      return [
        state("position", on: "/position")
      ] + (memory.has(part, "tilt") ? [state("tilt", on: "/tilt")] : []) + [
        DeviceMessage(
          topic: "\(topic)/\(part)/state",
          text: isClosed ? "closed" : "open",
          retain: true
        )
      ]
    case "climate":
      return [state("target_temperature", on: "/target_temperature"), state("mode", on: "/mode")]
    case "fan": return [state("state"), state("speed_level", on: "/speed_level")]
    default: return []
    }
  }
}
