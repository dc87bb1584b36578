// Settle
// SPDX-License-Identifier: Apache-2.0

/// The profiles of `devices/profiles/`, as the build put them into the binary.
enum EmbeddedProfiles {
  /// Name of the convention, which begins the names of its profiles, and the file's bytes.
  static var files: [(name: String, bytes: [UInt8])] {
    [
      ("zigbee2mqtt", PackageResources.zigbee2mqtt_yaml),
      ("tasmota", PackageResources.tasmota_yaml),
      ("shelly", PackageResources.shelly_yaml),
      ("esphome", PackageResources.esphome_yaml),
      ("wled", PackageResources.wled_yaml),
      ("zwave-js", PackageResources.zwave_js_yaml),
      ("homie", PackageResources.homie_yaml),
      ("homeassistant", PackageResources.homeassistant_yaml),
    ]
  }
}
