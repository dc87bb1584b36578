// Settle
// SPDX-License-Identifier: Apache-2.0

/// Who announces devices.
package enum ImportSource: String, CaseIterable, Hashable, Sendable {
  case zigbee2mqtt
  case homeassistant
  case homie

  /// What people call it.
  package var title: String {
    switch self {
    case .zigbee2mqtt: "Zigbee2MQTT"
    case .homeassistant: "Home Assistant discovery"
    case .homie: "Homie 5"
    }
  }

  /// The file that its devices are written to.
  package var fileName: String { "imported-\(rawValue).yaml" }

  /// What the last import wrote there, so that the next one knows what a person changed.
  package var recordName: String { ".imported-\(rawValue).json" }
}
