// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// A device with one topic for commands and one for reports of each value, as cameras of Frigate,
/// charging points of evcc, inverters of OpenDTU and devices behind Venus OS have.
package struct ValueTopics: WireConvention {
  /// The topics of one value.
  package struct Value: Sendable {
    var command: String
    var state: String
    /// Where the value can be asked for.
    var query: String?
  }

  /// The topic and the words of the availability; `nil` where nothing tells.
  private let status: (topic: String, online: String, offline: String)?
  private let values: [String: Value]
  /// Whether a value stands in an object, as in `{"value":1}`.
  private let isWrapped: Bool

  package var subscriptions: [String] {
    values.values.flatMap { [$0.command, $0.query].compactMap { $0 } }.sorted()
  }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    status.map { status in
      DeviceMessage(
        topic: status.topic,
        text: isOnline ? status.online : status.offline,
        retain: true
      )
    }
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    for (name, value) in values {
      if message.topic == value.query { return DeviceAnswer(queriedParts: [name]) }
      guard message.topic == value.command else { continue }
      guard isWrapped else {
        return DeviceAnswer([DeviceChange(name, "value", .set(.string(message.text)))])
      }
      guard let wanted = message.object?["value"] else { return .refused() }
      return DeviceAnswer([DeviceChange(name, "value", .set(wanted))])
    }
    return nil
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    guard let topics = values[part] else { return [] }
    let value = memory.value(part, "value")
    guard isWrapped else {
      let text = memory.text(part, "value")
      return [DeviceMessage(topic: topics.state, text: text, retain: true)]
    }
    return [DeviceMessage(topic: topics.state, json: .object(["value": value]))]
  }
}

// MARK: - Devices

extension ValueTopics {
  /// A camera of Frigate; `topic` is `frigate/<camera>`.
  package static func camera(_ topic: String) -> ConventionalDevice<Self> {
    device(
      ["detect": "OFF", "recordings": "ON", "motion_threshold": "30"],
      status: (levels(of: topic, without: 1) + "/available", "online", "offline")
    ) { Value(command: "\(topic)/\($0)/set", state: "\(topic)/\($0)/state") }
  }

  /// A charging point of evcc; `topic` is `evcc/loadpoints/<number>`.
  package static func loadpoint(_ topic: String) -> ConventionalDevice<Self> {
    device(
      ["mode": "pv", "limitSoc": "80", "minCurrent": "6", "maxCurrent": "16"],
      status: (levels(of: topic, without: 2) + "/status", "online", "offline")
    ) { Value(command: "\(topic)/\($0)/set", state: "\(topic)/\($0)") }
  }

  /// An inverter of OpenDTU; `topic` is `solar/<serial>`.
  package static func inverter(_ topic: String) -> ConventionalDevice<Self> {
    device(["limit": "100"], status: ("\(topic)/status/reachable", "1", "0")) { name in
      Value(
        command: "\(topic)/cmd/\(name)_nonpersistent_relative",
        state: "\(topic)/status/\(name)_relative"
      )
    }
  }

  /// A value behind Venus OS; `topic` is the portal's id.
  package static func victron(
    _ topic: String,
    path: String,
    initial: JSONValue
  ) -> ConventionalDevice<Self> {
    device([path: initial], isWrapped: true) { path in
      Value(
        command: "W/\(topic)/\(path)",
        state: "N/\(topic)/\(path)",
        query: "R/\(topic)/\(path)"
      )
    }
  }

  private static func device(
    _ initial: [String: JSONValue],
    status: (topic: String, online: String, offline: String)? = nil,
    isWrapped: Bool = false,
    topics: (String) -> Value
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(
        status: status,
        values: Dictionary(uniqueKeysWithValues: initial.keys.map { ($0, topics($0)) }),
        isWrapped: isWrapped
      ),
      parts: initial.mapValues { ["value": $0] }
    )
  }

  /// A topic without its last levels.
  private static func levels(of topic: String, without count: Int) -> String {
    topic.split(separator: "/").dropLast(count).joined(separator: "/")
  }
}

/// A Homie 5 device: `…/set` in; `$target` immediately, then the value, both retained.
///
/// Parts are named `<node>/<property>` and have a `value` and a `target`. A payload that does not
/// fit the datatype is ignored.
package struct HomieDevice: WireConvention {
  /// The time that a number takes from 0 to 100.
  package static let fullTravel = Duration.seconds(1)

  /// `homie/5/<device>`.
  package let topic: String
  /// The datatype of each part: `float`, `boolean`, `string` or `color`.
  package let datatypes: [String: String]

  /// Creates a device `homie/5/<device>` with a datatype and an initial value for each property.
  package static func device(
    _ topic: String,
    properties: [String: (datatype: String, value: JSONValue)]
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(topic: topic, datatypes: properties.mapValues(\.datatype)),
      parts: properties.mapValues { ["value": $0.value, "target": $0.value] }
    )
  }

  package var subscriptions: [String] { ["\(topic)/+/+/set"] }

  package var greeting: [DeviceMessage] { [description, availability(true)].compactMap(\.self) }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(topic: "\(topic)/$state", text: isOnline ? "ready" : "lost", retain: true)
  }

  private var description: DeviceMessage {
    var nodes: [String: [JSONValue.Member]] = [:]
    for (part, datatype) in datatypes.sorted(by: { $0.key < $1.key }) {
      let names = part.split(separator: "/").map(String.init)
      let facts = JSONValue.object(["datatype": .string(datatype), "settable": true])
      nodes[names[0], default: []].append(.init(names.last ?? "", facts))
    }
    let members = nodes.sorted { $0.key < $1.key }.map {
      JSONValue.Member($0.key, .object(["properties": .object($0.value)]))
    }
    return DeviceMessage(
      topic: "\(topic)/$description",
      json: .object(["homie": "5.0", "version": 1, "nodes": .object(members)]),
      retain: true
    )
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let levels = message.levels(below: topic), levels.count == 3 else { return nil }
    let part = levels[0] + "/" + levels[1]
    guard memory.has(part), let datatype = datatypes[part] else { return nil }
    let word = message.text
    let kind: DeviceChange.Kind
    switch datatype {
    case "float":
      guard let number = message.number else { return .refused() }
      kind = .travel(to: number, whole: Self.fullTravel)
    case "boolean":
      guard ["true", "false"].contains(word) else { return .refused() }
      kind = .set(.string(word))
    case "color":
      guard word.hasPrefix("rgb,"), word.split(separator: ",").count == 4 else {
        return .refused()
      }
      kind = .set(.string(word))
    default: kind = .set(.string(word))
    }
    return DeviceAnswer([
      DeviceChange(part, "target", .set(.string(word))), DeviceChange(part, "value", kind),
    ])
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    [("/$target", "target"), ("", "value")].map { path, name in
      DeviceMessage(topic: "\(topic)/\(part)\(path)", text: memory.text(part, name), retain: true)
    }
  }
}
