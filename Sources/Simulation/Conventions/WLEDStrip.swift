// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON
internal import Values

/// A strip with WLED: JSON on `/api`, brightness and power on the device topic, color on `/col`;
/// `/g`, `/c`, `/v` out.
///
/// Power is reported as brightness only, with 0 for off. `ON` restores the last brightness. Of JSON
/// it knows `on`, `bri` and the first color of `seg`.
package struct WLEDStrip: WireConvention {
  private static let part = "strip"

  /// The device topic, such as `wled/<mac>`.
  package let topic: String

  package static func device(_ topic: String) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(topic: topic),
      parts: [part: ["brightness": 128, "last": 128, "color": "#FFA000"]]
    )
  }

  package var subscriptions: [String] { [topic, "\(topic)/col", "\(topic)/api"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(topic: "\(topic)/status", text: isOnline ? "online" : "offline", retain: true)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    let word = message.text
    if message.topic == "\(topic)/col" {
      guard word.hasPrefix("#"), [7, 9].contains(word.utf8.count) else { return .refused() }
      return DeviceAnswer([DeviceChange(Self.part, "color", .set(.string(word.uppercased())))])
    }
    if message.topic == "\(topic)/api" {
      return message.object.flatMap { json($0, memory) } ?? .refused()
    }
    let isOn = memory.number(Self.part, "brightness") > 0
    let last = memory.value(Self.part, "last")
    switch word {
    case "ON": return DeviceAnswer([brightness(last)])
    case "OFF": return DeviceAnswer([brightness(0)])
    case "T": return DeviceAnswer([brightness(isOn ? 0 : last)])
    default:
      guard let asked = message.number, (0...255).contains(asked) else { return .refused() }
      let value = JSONValue.integer(Int64(asked))
      let memories = asked > 0 ? [DeviceChange(Self.part, "last", .set(value))] : []
      return DeviceAnswer([brightness(value)] + memories)
    }
  }

  /// As `deserializeState` of WLED's json.cpp: first the brightness, then the power.
  private func json(_ command: JSONValue, _ memory: DeviceMemory) -> DeviceAnswer? {
    var changes: [DeviceChange] = []
    var last = memory.value(Self.part, "last")
    var level = memory.number(Self.part, "brightness")
    if let asked = command["bri"]?.double {
      guard (0...255).contains(asked) else { return nil }
      level = asked
      let value = JSONValue.integer(Int64(asked))
      changes.append(brightness(value))
      if asked > 0 {
        last = value
        changes.append(DeviceChange(Self.part, "last", .set(value)))
      }
    }
    if case .boolean(let isOn)? = command["on"], isOn != (level > 0) {
      changes.append(brightness(isOn ? last : 0))
    }
    if case .array(let colors)? = command["seg"]?["col"], let first = colors.first {
      guard let color = Color(wire: first, encoding: .channels),
        let hex = color.wire(.hex).string
      else { return nil }
      changes.append(DeviceChange(Self.part, "color", .set(.string(hex.uppercased()))))
    }
    return changes.isEmpty ? nil : DeviceAnswer(changes)
  }

  private func brightness(_ value: JSONValue) -> DeviceChange {
    DeviceChange(Self.part, "brightness", .set(value))
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let brightness = memory.text(part, "brightness")
    return [
      DeviceMessage(topic: "\(topic)/g", text: brightness),
      DeviceMessage(topic: "\(topic)/c", text: memory.text(part, "color")),
      DeviceMessage(topic: "\(topic)/v", text: "<vs><ac>\(brightness)</ac></vs>"),
    ]
  }
}
