// Settle
// SPDX-License-Identifier: Apache-2.0

/// The conventions that profiles ship for, as they are named on a command line.
package enum ConventionName: String, CaseIterable, Sendable {
  case zigbee2mqtt
  case tasmota
  case shellyGen1 = "shelly-gen1"
  case shellyGen2 = "shelly-gen2"
  case esphome
  case wled
  case zwaveJS = "zwave-js"
  case homie
  case homeAssistant = "homeassistant"
}
