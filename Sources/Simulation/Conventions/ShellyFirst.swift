// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
import Values

/// A Shelly of the first generation: bare words for relays and rollers, JSON for lights.
///
/// Parts have the names of their topics: `relay/0`, `light/0`, `white/0`, `color/0`, `roller/0`,
/// `thermostat/0`. States are not retained. `…/light/0/command` is not simulated, because its words
/// are not verified.
package struct ShellyFirst: WireConvention {
  package static let fullTravel = Duration.seconds(4)

  /// `shellies/<id>`.
  package let topic: String

  package static func device(
    _ topic: String,
    parts: [String: [String: JSONValue]]
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(Self(topic: topic), parts: parts)
  }

  package static let relay: [String: JSONValue] = ["on": false]
  package static let light: [String: JSONValue] = ["on": true, "brightness": 40]
  package static let color: [String: JSONValue] = [
    "on": true, "mode": "color", "gain": 40, "brightness": 40, "temp": 3000, "white": 0, "red": 255,
    "green": 255, "blue": 255,
  ]
  package static let roller: [String: JSONValue] = ["pos": 0]
  package static let thermostat: [String: JSONValue] = ["target_t": 20]

  package var subscriptions: [String] {
    [
      "\(topic)/relay/+/command", "\(topic)/light/+/set", "\(topic)/white/+/set",
      "\(topic)/color/+/set",
      "\(topic)/roller/+/command/#",
      "\(topic)/thermostat/+/command/target_t",
    ]
  }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(topic: "\(topic)/online", text: isOnline ? "true" : "false", retain: true)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let levels = message.levels(below: topic), levels.count >= 3 else { return nil }
    let part = levels[0] + "/" + levels[1]
    guard memory.has(part) else { return nil }
    let changes =
      switch levels[0] {
      case "relay":
        message.flag(on: "on", off: "off").map { [DeviceChange(part, "on", .set(.boolean($0)))] }
      case "light", "white", "color":
        message.object.flatMap { light(part, $0, has: { memory.has(part, $0) }) }
      case "roller":
        levels.last == "pos"
          ? message.number.flatMap { move(part, to: $0) }
          : roller(part, message.text)
      case "thermostat": DeviceChange.number(part, "target_t", message)
      default: nil as [DeviceChange]?
      }
    return changes.map { DeviceAnswer($0) } ?? .refused()
  }

  private static let bounds = [
    "brightness": 0...100.0, "gain": 0...100.0, "temp": 3000...6500.0, "white": 0...255.0,
    "red": 0...255.0, "green": 0...255.0, "blue": 0...255.0,
  ]

  private func light(
    _ part: String,
    _ command: JSONValue,
    has: (String) -> Bool
  ) -> [DeviceChange]? {
    var changes: [DeviceChange] = []
    if let word = command["turn"]?.string {
      guard ["on", "off"].contains(word) else { return nil }
      changes.append(DeviceChange(part, "on", .set(.boolean(word == "on"))))
    }
    if let mode = command["mode"], has("mode") {
      guard ["white", "color"].contains(mode.string) else { return nil }
      changes.append(DeviceChange(part, "mode", .set(mode)))
    }
    let time = Duration.milliseconds(Int64(command["transition"]?.double ?? 0))
    for (name, bounds) in Self.bounds where has(name) {
      guard let asked = command[name]?.double else { continue }
      guard bounds.contains(asked) else { return nil }
      changes.append(DeviceChange(part, name, .move(to: asked, over: time)))
    }
    return changes
  }

  private func roller(_ part: String, _ word: String) -> [DeviceChange]? {
    switch word {
    case "open": move(part, to: 100)
    case "close": move(part, to: 0)
    case "stop": [DeviceChange(part, "pos", .stop)]
    default: nil
    }
  }

  private func move(_ part: String, to target: Double) -> [DeviceChange]? {
    guard (0...100).contains(target) else { return nil }
    return [DeviceChange(part, "pos", .travel(to: target, whole: Self.fullTravel))]
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let isOn = memory.value(part, "on") == true
    switch part.prefix(while: { $0 != "/" }) {
    case "relay": return [DeviceMessage(topic: "\(topic)/\(part)", text: isOn ? "on" : "off")]
    case "light", "white", "color":
      let mode = memory.has(part, "mode") ? memory.value(part, "mode") : "white"
      let levels = memory.members(part, Self.bounds.keys.sorted())
      let shown =
        [JSONValue.Member("ison", .boolean(isOn)), JSONValue.Member("mode", mode)] + levels
      return [DeviceMessage(topic: "\(topic)/\(part)/status", json: .object(shown))]
    case "roller":
      let word = memory.isMoving(part) ? "open" : "stop"
      return [
        DeviceMessage(topic: "\(topic)/\(part)", text: word),
        DeviceMessage(topic: "\(topic)/\(part)/pos", text: memory.text(part, "pos")),
      ]
    case "thermostat":
      let target: JSONValue = .object([
        "enabled": true, "value": memory.value(part, "target_t"), "units": "C",
      ])
      let valve: JSONValue = .object([
        "pos": 100, "target_t": target,
        "tmp": .object(["value": 19.5, "units": "C", "is_valid": true]),
      ])
      return [
        DeviceMessage(
          topic: "\(topic)/info",
          json: .object(["thermostats": .array([valve]), "bat": .object(["value": 99])])
        )
      ]
    default: return []
    }
  }
}
