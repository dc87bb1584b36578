// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// Finds, reads and checks the settings and the device files.
package enum ConfigurationLoader {
  /// What the command line gave; beats the environment, which beats the file.
  package struct Overrides: Sendable {
    package var config: String?
    package var devices: String?
    package var socket: String?

    package init() {}
  }

  /// Where the settings are when nobody says where.
  package static let standardPath = "/etc/settle/settle.yaml"

  /// Reads configuration and devices; throws every mistake at once.
  package static func load(
    _ overrides: Overrides,
    environment: [String: String]
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    let reading = Reading(environment: environment)
    let loaded = reading.load(overrides)
    let problems = reading.problems
    guard problems.errors.isEmpty else {
      throw ConfigurationFailure(problems: problems.sorted(problems.errors))
    }
    return loaded
  }

  /// Reads the devices of one folder alone, with built-in settings, as `simulate --devices` does.
  package static func loadDevices(
    in folder: String
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    let reading = Reading(environment: [:])
    let (settings, places) = (GatewayConfiguration(), SettingsPlaces())
    let loaded = reading.complete(settings, places, folder: (folder, .start(of: folder)))
    let problems = reading.problems
    guard problems.errors.isEmpty else {
      throw ConfigurationFailure(problems: problems.sorted(problems.errors))
    }
    return loaded
  }
}
