// Settle
// SPDX-License-Identifier: Apache-2.0

/// The JSON Schemas of `config/`, embedded in the binary.
package enum Schema {
  /// The schema of the settings file.
  package static var settings: [UInt8] { PackageResources.settle_schema_json }
  /// The schema of device files.
  package static var devices: [UInt8] { PackageResources.devices_schema_json }
}
