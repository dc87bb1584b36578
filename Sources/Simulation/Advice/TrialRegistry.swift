// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Values

/// The devices of a recording for a trial: their values are positions in the recording.
struct TrialRegistry {
  let registry: Registry
  /// The index of each key of the recording.
  let indices: [KeyIndex]

  init(_ recording: Recording, _ lanes: TrialLanes, policy: Policy, for key: Int) {
    var devices: [Device] = []
    var places: [Int] = []
    for (number, entry) in recording.keys.enumerated() {
      if entry.device == devices.count {
        devices.append(Device(id: "d\(entry.device)", name: "", properties: []))
      }
      devices[entry.device].lane = lanes.lane(of: entry) ?? devices[entry.device].lane
      places.append(devices[entry.device].properties.count)
      var property = Self.property(number, entry, number == key ? policy : entry.policy)
      property.urgent = recording.urgentPositions(of: number).map { .number(Double($0)) }
      if let name = lanes.lane(of: entry), lanes.limits[name]?.window != nil {
        property.state = StateSource(topic: "s\(number)", value: .whole)
        property.confirm = Confirmation()
      }
      devices[entry.device].properties.append(property)
    }
    var count = 0
    let firsts = devices.map { device in
      defer { count += device.properties.count }
      return count
    }
    registry = Registry(devices)
    indices = zip(recording.keys, places).map { KeyIndex(Int32(firsts[$0.device] + $1)) }
  }

  private static func property(_ number: Int, _ key: Recording.Key, _ policy: Policy) -> Property {
    var property = Property(
      id: key.property?.id ?? "p\(number)",
      kind: .integer(NumberRule()),
      policy: policy,
      command: CommandEndpoint(topic: "c\(number)", payload: PayloadTemplate("$value"))
    )
    property.ends = key.property?.ends ?? []
    property.excludes = key.property?.excludes ?? []
    return property
  }
}

extension Recording {
  /// The changes of a key to values that are sent at once.
  func urgentPositions(of key: Int) -> [Int] {
    entries.indices.filter { position in
      guard entries[position].key == key else { return false }
      if case .change(_, isUrgent: true) = entries[position].operation { return true }
      return false
    }
  }
}
