// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
import Values

/// A Shelly of the second or a later generation: JSON-RPC with replies and status notifications.
///
/// A reply has the `id` of its request and goes to `<src>/rpc`. Parts have the names of components:
/// `switch:0`, `light:0`, `cover:0`. States are not retained.
package struct ShellyRPC: WireConvention {
  package static let fullTravel = Duration.seconds(4)

  /// The topic prefix.
  package let topic: String

  package static func device(
    _ topic: String,
    parts: [String: [String: JSONValue]]
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(Self(topic: topic), parts: parts)
  }

  package static let relay: [String: JSONValue] = ["output": false]
  package static let light: [String: JSONValue] = ["output": true, "brightness": 40]
  package static let colorLight: [String: JSONValue] = [
    "output": true, "brightness": 40, "rgb": .array([255, 0, 0]),
  ]
  package static let whiteColorLight: [String: JSONValue] = [
    "output": true, "brightness": 40, "rgb": .array([255, 0, 0]), "white": 0,
  ]
  package static let whiteLight: [String: JSONValue] = [
    "output": true, "brightness": 40, "ct": 3000,
  ]
  package static let thermostat: [String: JSONValue] = ["target_C": 20, "current_C": 19.5]
  package static let cover: [String: JSONValue] = ["current_pos": 0, "target_pos": 0]

  package var subscriptions: [String] { ["\(topic)/rpc"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(topic: "\(topic)/online", text: isOnline ? "true" : "false", retain: true)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let request = message.object, let id = request["id"],
      let source = request["src"]?.string, let method = request["method"]?.string
    else { return .refused() }
    let component = request["params"]?["config"]?["id"] ?? request["params"]?["id"]
    let number = component?.double.map { Int($0) } ?? 0
    let words = method.split(separator: ".")
    let part = "\(words.first?.lowercased() ?? ""):\(number)"
    func reply(_ name: String, _ body: JSONValue) -> [DeviceMessage] {
      let frame = JSONValue.object(["id": id, "src": .string(topic), "dst": .string(source)])
      guard case .object(let members) = frame else { return [] }
      return [DeviceMessage(topic: "\(source)/rpc", json: .object(members + [.init(name, body)]))]
    }
    guard memory.has(part), let params = request["params"],
      let changes = changes(method, part, params, memory)
    else {
      let error = JSONValue.object(["code": 404, "message": .string("No handler for \(method)")])
      return .refused(reply("error", error))
    }
    let result: JSONValue =
      method.hasSuffix(".Set") ? .object(["was_on": memory.value(part, "output")]) : .null
    return DeviceAnswer(changes, acknowledgement: reply("result", result))
  }

  private func changes(
    _ method: String,
    _ part: String,
    _ params: JSONValue,
    _ memory: DeviceMemory
  ) -> [DeviceChange]? {
    switch method {
    case "Switch.Set": return params["on"].map { [DeviceChange(part, "output", .set($0))] }
    case "Thermostat.SetConfig":
      return params["config"]?["target_C"].map { [DeviceChange(part, "target_C", .set($0))] }
    case "Light.Set", "RGB.Set", "RGBW.Set", "CCT.Set":
      var changes: [DeviceChange] = []
      if let isOn = params["on"] { changes.append(DeviceChange(part, "output", .set(isOn))) }
      if let asked = params["brightness"]?.double {
        let time = Duration.milliseconds(
          Int64((params["transition_duration"]?.double ?? 0) * 1000)
        )
        changes.append(DeviceChange(part, "brightness", .move(to: asked, over: time)))
      }
      for name in ["rgb", "white", "ct"] where memory.has(part, name) {
        if let value = params[name] { changes.append(DeviceChange(part, name, .set(value))) }
      }
      return changes.isEmpty ? nil : changes
    case "Cover.GoToPosition": return params["pos"]?.double.map { travel(part, to: $0) }
    case "Cover.Open": return travel(part, to: 100)
    case "Cover.Close": return travel(part, to: 0)
    case "Cover.Stop":
      let position = memory.value(part, "current_pos")
      return [
        DeviceChange(part, "current_pos", .stop), DeviceChange(part, "target_pos", .set(position)),
      ]
    default: return nil
    }
  }

  private func travel(_ part: String, to target: Double) -> [DeviceChange] {
    [
      DeviceChange(part, "current_pos", .travel(to: target, whole: Self.fullTravel)),
      DeviceChange(part, "target_pos", .set(JSONValue(shortest: target))),
    ]
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let number = part.split(separator: ":").last.flatMap { Int64($0) } ?? 0
    var members: [JSONValue.Member] = [.init("id", .integer(number)), .init("source", "MQTT")]
    let names = [
      "output", "brightness", "rgb", "white", "ct", "target_C", "current_C", "current_pos",
      "target_pos",
    ]
    members += memory.members(part, names)
    if memory.has(part, "current_pos") {
      let isUp = memory.number(part, "target_pos") > memory.number(part, "current_pos")
      let word = memory.isMoving(part) ? (isUp ? "opening" : "closing") : "stopped"
      members.append(.init("state", .string(word)))
    }
    let params = JSONValue.object([.init(part, .object(members))])
    return [
      DeviceMessage(topic: "\(topic)/status/\(part)", json: .object(members)),
      DeviceMessage(
        topic: "\(topic)/events/rpc",
        json: .object([
          "src": .string(topic), "dst": .string("\(topic)/events"), "method": "NotifyStatus",
          "params": params,
        ])
      ),
    ]
  }
}
