// Settle
// SPDX-License-Identifier: Apache-2.0

/// A convention by which devices are announced.
package enum ImportSource: String, CaseIterable, Hashable, Sendable {
  case zigbee2mqtt
  case homeassistant
  case homie
  case tasmota
  case shelly

  /// The display name.
  package var title: String {
    switch self {
    case .zigbee2mqtt: "Zigbee2MQTT"
    case .homeassistant: "Home Assistant discovery"
    case .homie: "Homie 5"
    case .tasmota: "Tasmota"
    case .shelly: "Shelly"
    }
  }

  /// The name of the device file.
  package var fileName: String { "imported-\(rawValue).yaml" }

  /// The name of the record of the last import, which shows the next one what the user has edited.
  package var recordName: String { ".imported-\(rawValue).json" }
}
