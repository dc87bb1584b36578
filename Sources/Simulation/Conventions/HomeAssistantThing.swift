// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON
import Values

/// A device with the topics of the examples in Home Assistant's documentation.
///
/// It has one part, named after its type: `switch`, `light`, `light-json`, `number`, `cover` or
/// `climate`. States are retained.
package struct HomeAssistantThing: WireConvention {
  package static let fullTravel = Duration.seconds(4)

  package let topic: String
  package let part: String

  package static func device(_ topic: String, _ part: String) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(topic: topic, part: part),
      parts: [part: values[part, default: [:]]]
    )
  }

  private static let values: [String: [String: JSONValue]] = [
    "switch": ["state": "OFF"], "light": ["state": "ON", "brightness": 100, "rgb": "255,160,0"],
    "light-json": ["state": "ON", "brightness": 100, "color_temp": 300], "number": ["value": 20],
    "cover": ["position": 0], "climate": ["temperature": 20, "mode": "heat"],
  ]

  package var subscriptions: [String] { ["\(topic)/set", "\(topic)/+/set"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(
      topic: "\(topic)/availability",
      text: isOnline ? "online" : "offline",
      retain: true
    )
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let levels = message.levels(below: topic) else { return nil }
    let word = message.text
    let changes: [DeviceChange]? =
      switch (part, levels.count == 2 ? levels[0] : nil) {
      case ("switch", nil), ("light", nil):
        ["ON", "OFF"].contains(word) ? [DeviceChange(part, "state", .set(.string(word)))] : nil
      case ("light", "brightness"): DeviceChange.number(part, "brightness", message)
      case ("light", "rgb"): [DeviceChange(part, "rgb", .set(.string(word)))]
      case ("light-json", nil): message.object.flatMap { light($0) }
      case ("number", nil): DeviceChange.number(part, "value", message)
      case ("cover", "position"): DeviceChange.position(part, message, whole: Self.fullTravel)
      case ("cover", nil): DeviceChange.cover(part, word, whole: Self.fullTravel)
      case ("climate", "temperature"): DeviceChange.number(part, "temperature", message)
      case ("climate", "mode"): [DeviceChange(part, "mode", .set(.string(word)))]
      default: nil
      }
    return changes.map { DeviceAnswer($0) } ?? .refused()
  }

  private func light(_ command: JSONValue) -> [DeviceChange]? {
    let transition = Duration.milliseconds(Int64((command["transition"]?.double ?? 0) * 1000))
    var changes: [DeviceChange] = []
    for name in ["state", "color_temp", "color"] {
      if let value = command[name] { changes.append(DeviceChange(part, name, .set(value))) }
    }
    if let asked = command["brightness"]?.double {
      changes.append(DeviceChange(part, "brightness", .move(to: asked, over: transition)))
    }
    return changes.isEmpty ? nil : changes
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    func state(_ name: String, _ path: String) -> DeviceMessage {
      DeviceMessage(topic: "\(topic)/\(path)", text: memory.text(part, name), retain: true)
    }
    switch part {
    case "switch": return [state("state", "state")]
    case "light":
      return [
        state("state", "state"), state("brightness", "brightness/state"), state("rgb", "rgb/state"),
      ]
    case "light-json":
      let names = ["state", "brightness", "color_temp", "color"]
      let members = memory.members(part, names)
      return [DeviceMessage(topic: "\(topic)/state", json: .object(members), retain: true)]
    case "number": return [state("value", "state")]
    case "cover": return [state("position", "position")]
    case "climate": return [state("temperature", "temperature/state"), state("mode", "mode/state")]
    default: return []
    }
  }
}
