// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration

/// A command that `settled` does, in this process.
protocol DaemonCommand: Command {
  /// Does it; results go to standard output, everything else to standard error.
  func run() -> ExitCode
}

extension DaemonCommand {
  /// The rows that name the configuration.
  static func configurationParameters(
    config: any WritableKeyPath<Self, String?> & Sendable,
    devices: any WritableKeyPath<Self, String?> & Sendable
  ) -> [Parameter<Self>] {
    [
      .option(
        "config",
        config,
        value: "F",
        completion: .files,
        help: "The settings; else SETTLE_CONFIG, else \(ConfigurationLoader.standardPath), else"
          + " built-in values."
      ),
      .option(
        "devices",
        devices,
        value: "DIR",
        completion: .directories,
        help: "The folder with the device files, instead of the one that the settings name."
      ),
    ]
  }

  /// Reports in the command's name.
  func complain(_ message: String) {
    StandardError.write("settle \(Self.name): \(message)")
  }
}
