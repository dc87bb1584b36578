// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Values

/// The devices of every run; each value is a number, so that devices show which change they got.
enum ClusterHouse {
  /// Sixteen devices, of which every other one can be stopped, and a group of six of them.
  static var devices: [Device] {
    let devices = (0..<16).map { device($0) }
    let members = Array(devices[2..<8])
    var group = Device(
      id: "hall",
      name: "Hall",
      properties: DeviceGroup.sharedProperties(of: members)
    )
    group.group = DeviceGroup(members: members.map(\.id))
    return devices + [group]
  }

  /// The property that stops what a device does.
  static let stop = "stop"

  private static func device(_ number: Int) -> Device {
    var properties = [
      level("level", of: number, Policy(delay: .milliseconds(number.isMultiple(of: 3) ? 0 : 300))),
      level("tone", of: number, Policy(delay: .milliseconds(800), maxWait: .seconds(3))),
    ]
    if number.isMultiple(of: 2) {
      var stop = Property(
        id: Self.stop,
        kind: .choice([Self.stop]),
        policy: Policy(delay: .milliseconds(300)),
        command: endpoint(Self.stop, of: number)
      )
      stop.urgent = [.text(Self.stop)]
      stop.ends = ["level", "tone"]
      properties.append(stop)
    }
    return Device(id: "lamp-\(number)", name: "Lamp \(number)", properties: properties)
  }

  private static func level(_ id: String, of device: Int, _ policy: Policy) -> Property {
    var property = Property(
      id: id,
      kind: .number(NumberRule(range: 0...1_000_000_000, step: 1)),
      policy: policy,
      command: endpoint(id, of: device)
    )
    property.ttl = .seconds(3600)
    return property
  }

  private static func endpoint(_ id: String, of device: Int) -> CommandEndpoint {
    CommandEndpoint(topic: "lamp-\(device)/\(id)/set", payload: PayloadTemplate("$value"))
  }
}
