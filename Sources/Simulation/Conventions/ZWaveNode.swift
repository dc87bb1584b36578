// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
import LastOut
import Values

/// A node behind Z-Wave JS UI, with topics of the type ValueID or by name.
///
/// Parts are named `<command class>/<endpoint>`, such as `38/0` or `switch_multilevel/endpoint_0`.
/// Level 255 restores the last one. A write to `targetValue`, or to `currentValue`, is reported on
/// `targetValue` immediately; `currentValue` follows as the node moves.
package struct ZWaveNode: WireConvention {
  package static let fullTravel = Duration.seconds(2)

  /// `<prefix>/<node id>`.
  package let topic: String
  /// Whether states are bare values, or `{"time":…,"value":…}`.
  package let isRaw: Bool

  package static func device(
    _ topic: String,
    isRaw: Bool = false,
    parts: [String: [String: JSONValue]]
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(Self(topic: topic, isRaw: isRaw), parts: parts)
  }

  package static let binary: [String: JSONValue] = ["currentValue": false, "targetValue": false]
  package static let level: [String: JSONValue] = [
    "currentValue": 20, "targetValue": 20, "lastValue": 20,
  ]
  package static let color: [String: JSONValue] = [
    "currentColor": .object(["red": 255, "green": 255, "blue": 255]),
    "targetColor": .object(["red": 255, "green": 255, "blue": 255]),
  ]
  package static let setpoint: [String: JSONValue] = ["setpoint/1": 20]
  package static let mode: [String: JSONValue] = ["mode": 1]

  package var subscriptions: [String] { ["\(topic)/+/+/+/set", "\(topic)/+/+/+/+/set"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    let plain = JSONValue.boolean(isOnline)
    let object = JSONValue.object(["value": plain, "status": isOnline ? "Alive" : "Dead"])
    return DeviceMessage(topic: "\(topic)/status", json: isRaw ? plain : object, retain: true)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let levels = message.levels(below: topic), levels.count >= 4 else { return nil }
    let part = levels[0] + "/" + levels[1]
    var name = levels[2...].dropLast().joined(separator: "/")
    if name == "currentValue" { name = "targetValue" }
    guard memory.has(part, name) else { return nil }
    let object = message.object
    let duration = Self.duration(object?["options"]?["transitionDuration"]?.string)
    if let number = object?["value"]?.double ?? message.number {
      let value = JSONValue(shortest: number)
      guard name == "targetValue" else {
        return DeviceAnswer([DeviceChange(part, name, .set(value))])
      }
      if number == 255 {
        let last = memory.value(part, "lastValue")
        return DeviceAnswer([DeviceChange(part, "currentValue", .set(last))])
      }
      guard (0...99).contains(number) else { return .refused() }
      let movement = duration.map { DeviceChange.Kind.move(to: number, over: $0) }
      return DeviceAnswer([
        DeviceChange(part, name, .set(value)),
        DeviceChange(part, "lastValue", .set(number > 0 ? value : memory.value(part, "lastValue"))),
        DeviceChange(part, "currentValue", movement ?? .travel(to: number, whole: Self.fullTravel)),
      ])
    }
    if name == "targetColor" {
      guard let color = object?["value"], case .object = color else { return .refused() }
      return DeviceAnswer([
        DeviceChange(part, name, .set(color)), DeviceChange(part, "currentColor", .set(color)),
      ])
    }
    let said = object?["value"] ?? message.flag(on: "true", off: "false").map { .boolean($0) }
    guard let value = said, case .boolean = value else { return .refused() }
    return DeviceAnswer([
      DeviceChange(part, "targetValue", .set(value)),
      DeviceChange(part, "currentValue", .set(value)),
    ])
  }

  /// Reads seconds such as `5s`; `nil` for any other unit.
  private static func duration(_ text: String?) -> Duration? {
    guard let text, text.hasSuffix("s"), let seconds = Double(text.dropLast()) else { return nil }
    return .milliseconds(Int64(seconds * 1000))
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let names = [
      "targetValue", "currentValue", "targetColor", "currentColor", "setpoint/1", "mode",
    ]
    return names.filter { memory.has(part, $0) }.map { name in
      let value = memory.value(part, name)
      let time = JSONValue.integer(Int64(memory.now.nanoseconds / 1_000_000))
      return DeviceMessage(
        topic: "\(topic)/\(part)/\(name)",
        json: isRaw ? value : .object(["time": time, "value": value])
      )
    }
  }
}
