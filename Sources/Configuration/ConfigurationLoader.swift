// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
internal import Values

/// Finds, reads and checks the settings file and the device files.
package enum ConfigurationLoader {
  /// Values from the command line, which override the environment and the file.
  package struct Overrides: Sendable {
    package var config: String?
    package var devices: String?
    package var socket: String?
    /// The folder of a running gateway where it imports; see ``GatewayConfiguration/stateDevices``.
    package var stateDevices: String?

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
  /// The digest of the device files and profiles: the same for all who have read the same files.
  package var digest: UInt64 = 0
  /// The hash of each of ``files``, by path: the same in this process while the file is.
  package var hashes: [String: Int] = [:]
  /// Problems that do not prevent a start.
  package var warnings: [ConfigurationProblem]
  /// Every setting and what stated it; empty where only device files were read.
  package var settings: [SettingInForce] = []
}

/// One mistake in a configuration file: its position, a message and a suggestion.
package struct ConfigurationProblem: Error, Hashable, Sendable {
  /// A file, a folder, or a variable such as `$SETTLE_DEVICES`.
  package var file: String
  /// Counted from one; 0 for a mistake that concerns all of the file.
  package var line: Int
  /// In characters, counted from one; 0 without a line.
  package var column: Int
  package var message: String
  package var suggestion: String?

  package init(
    file: String,
    line: Int,
    column: Int,
    message: String,
    suggestion: String? = nil
  ) {
    self.file = file
    self.line = line
    self.column = column
    self.message = message
    self.suggestion = suggestion
  }
}

extension ConfigurationProblem: CustomStringConvertible {
  /// `file:line:column: message`, or `file: message`, followed by the suggestion.
  ///
  /// Control characters are escaped: what a file says does not control the terminal.
  package var description: String {
    let question = suggestion.map { "; did you mean '\($0)'?" } ?? ""
    let position = line == 0 ? "" : ":\(line):\(column)"
    return Excerpt.visible("\(file)\(position): \(message)\(question)")
  }
}

extension ConfigurationProblem {
  /// The problem as one JSON object; `severity` is `error` or `warning`.
  ///
  /// `line` and `column` are `null` for a mistake that concerns all of the file.
  package func json(severity: String) -> JSONValue {
    .object([
      "file": .string(file),
      "line": line == 0 ? .null : .integer(Int64(line)),
      "column": line == 0 ? .null : .integer(Int64(column)),
      "severity": .string(severity), "message": .string(message),
      "suggestion": suggestion.map { .string($0) } ?? .null,
    ])
  }
}

/// All mistakes of one load, sorted by file and line.
package struct ConfigurationFailure: Error, Sendable {
  package var problems: [ConfigurationProblem]

  package init(problems: [ConfigurationProblem]) {
    self.problems = problems
  }
}
