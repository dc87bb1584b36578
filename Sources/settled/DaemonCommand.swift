// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Operations
import Values

/// A command that `settled` runs in this process.
protocol DaemonCommand: Command {
  /// Runs the command; results go to standard output, everything else to standard error.
  func run() -> ExitCode
}

/// A command that reads the configuration.
protocol ConfiguredCommand: DaemonCommand {
  /// The settings file that was named.
  var config: String? { get set }
  /// The folder with device files that was named.
  var devices: String? { get set }
}

extension ConfiguredCommand {
  /// The options that name the configuration.
  static var configurationParameters: [Parameter<Self>] {
    [
      .option(
        "config",
        { $0.config = $1 },
        value: "F",
        completion: .files,
        help: "The settings file; default: SETTLE_CONFIG, then \(ConfigurationLoader.standardPath),"
          + " then built-in values."
      ),
      .option(
        "devices",
        { $0.devices = $1 },
        value: "DIR",
        completion: .directories,
        help: "The folder with the device files; default: the one in the settings."
      ),
    ]
  }
}

extension DaemonCommand {
  /// Writes a message to standard error, after the command's name.
  func complain(_ message: String) {
    StandardError.write("settle \(Self.name): \(message)")
  }
}

/// The character set of the terminal.
enum TerminalLocale {
  /// Whether the locale that the environment names has UTF-8.
  static var isUTF8: Bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"]
    let locale = names.compactMap { Environment[$0] }.first { !$0.isEmpty }?.lowercased() ?? ""
    return locale.has("utf-8") || locale.has("utf8")
  }
}
