// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

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

  package func answer(
    topic received: String,
    payload: [UInt8],
    memory: DeviceMemory,
    at now: Moment
  ) -> DeviceAnswer? {
    guard let levels = levels(of: received, below: topic), levels.count == 3 else { return nil }
    let part = levels[0] + "/" + levels[1]
    guard memory.has(part), let datatype = datatypes[part] else { return nil }
    let word = WirePayload.word(payload)
    let kind: DeviceChange.Kind
    switch datatype {
    case "float":
      guard let number = WirePayload.number(payload) else { return .refused() }
      kind = .travel(to: number, span: 100, whole: Self.fullTravel)
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

  package func report(of part: String, memory: DeviceMemory, at now: Moment) -> [DeviceMessage] {
    [("/$target", "target"), ("", "value")].map { path, name in
      DeviceMessage(
        topic: "\(topic)/\(part)\(path)",
        text: memory.text(part, name, at: now),
        retain: true
      )
    }
  }
}
