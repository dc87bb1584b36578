// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
internal import Values

/// Finds, reads and checks the settings file and the device files.
package enum ConfigurationLoader {
  /// Values from the command line, which override the environment and the file.
  package struct Overrides: Sendable {
    package var config: String?
    package var devices: String?
    package var socket: String?

    package init() {}
  }

  /// The settings file to read when neither the command line nor the environment names one.
  package static let standardPath = CommandAdvice.standardSettings

  /// Reads the settings and the devices.
  ///
  /// `drafts` are device files by path that replace or add to those on disk. With drafts the folder
  /// of device files may be missing.
  ///
  /// - Throws: ``ConfigurationFailure`` with every mistake in all files.
  package static func load(
    _ overrides: Overrides,
    environment: [String: String],
    drafts: [String: [UInt8]]? = nil
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    let reader = ConfigurationReader(environment: environment, drafts: drafts)
    return try checked(reader.load(overrides), reader.problems)
  }

  /// Reads the settings and the devices as far as they can be read, with every mistake.
  ///
  /// `drafts` are as those of ``load(_:environment:drafts:)``.
  package static func inspect(
    _ overrides: Overrides,
    environment: [String: String],
    drafts: [String: [UInt8]]? = nil
  ) -> (loaded: LoadedConfiguration, mistakes: [ConfigurationProblem]) {
    let reader = ConfigurationReader(environment: environment, drafts: drafts)
    let loaded = reader.load(overrides)
    return (loaded, reader.problems.sorted(reader.problems.errors))
  }

  /// Reads the device files of one folder with built-in settings, as `simulate --devices` does.
  ///
  /// - Throws: ``ConfigurationFailure`` with every mistake in all files.
  package static func loadDevices(
    in folder: String
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    let reader = ConfigurationReader(environment: [:])
    let loaded = reader.complete(
      GatewayConfiguration(),
      SettingsPositions(),
      folder: (folder, .whole(folder))
    )
    return try checked(loaded, reader.problems)
  }

  private static func checked(
    _ loaded: LoadedConfiguration,
    _ problems: Problems
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    guard problems.errors.isEmpty else {
      throw ConfigurationFailure(problems: problems.sorted(problems.errors))
    }
    return loaded
  }
}

/// The settings and devices that a gateway starts with.
package struct LoadedConfiguration: Sendable {
  package var gateway: GatewayConfiguration
  package var registry: Registry
  /// Devices that appear with their first message.
  package var sources: [DeviceSource] = []
  /// The paths of all files that were read, in order.
  package var files: [String]
  /// The paths of profile files, which ``files`` contains too.
  package var profileFiles: [String]
  /// Of the device files and profiles: the same for those that have read the same files.
  package var digest: UInt64 = 0
  /// Problems that do not prevent a start.
  package var warnings: [ConfigurationProblem]
  /// Every setting and what stated it; empty where only device files were read.
  package var settings: [SettingInForce] = []
}
