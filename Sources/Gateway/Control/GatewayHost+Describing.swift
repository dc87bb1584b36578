// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import LastOut

/// What the gateway tells about its properties.
extension GatewayHost {
  /// What `describe` shows of a key.
  func propertyRow(_ key: KeyIndex) -> PropertyRow {
    let entry = registry.properties[Int(key.rawValue)]
    let device = registry.devices[entry.device]
    let property = entry.property
    var row = PropertyRow(
      key: entry.key,
      deviceName: device.name,
      kind: property.kind,
      policy: property.policy
    )
    row.name = property.name
    row.confirmWithin = property.confirm?.within
    row.urgent = property.urgent.map(\.json)
    row.ends = property.ends.map { other in
      (try? registry.index(of: other, inDevice: entry.device))
        .map { registry.properties[Int($0.rawValue)].key } ?? "\(device.id)/\(other)"
    }
    return row
  }
}
