// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// Everything the gateway starts from.
package struct LoadedConfiguration: Sendable {
  package var gateway: GatewayConfiguration
  package var registry: Registry
  /// The files that were read, in order.
  package var files: [String]
  /// Mistakes that do not stop the gateway.
  package var warnings: [ConfigurationProblem]
}

/// One mistake: where, what was found, what is allowed, what was probably meant.
package struct ConfigurationProblem: Error, Hashable, Sendable {
  package var file: String
  /// Counted from one.
  package var line: Int
  package var column: Int
  package var message: String
  package var suggestion: String?
  /// `file:line:column: message` and the suggestion.
  package var description: String { fatalError("skeleton") }
}

package struct ConfigurationFailure: Error, Sendable {
  package var problems: [ConfigurationProblem]
}

package enum ConfigurationLoader {
  /// What the command line gave; beats the environment, which beats the file.
  package struct Overrides: Sendable {
    package var config: String?
    package var devices: String?
    package var socket: String?
    package init() {}
  }

  /// Reads configuration and devices; throws every mistake at once.
  package static func load(
    _ overrides: Overrides, environment: [String: String]
  ) throws(ConfigurationFailure) -> LoadedConfiguration { fatalError("skeleton") }
}
