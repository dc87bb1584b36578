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
  ///
  /// `drafts` are device files, by path, that are not on the disk yet, or in another form; where
  /// they are given, the folder itself may be missing.
  package static func load(
    _ overrides: Overrides,
    environment: [String: String],
    drafts: [String: [UInt8]]? = nil
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    let reading = Reading(environment: environment, drafts: drafts)
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
