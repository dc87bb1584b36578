// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// Everything the gateway starts from.
package struct LoadedConfiguration: Sendable {
  package var gateway: GatewayConfiguration
  package var registry: Registry
  /// The files that were read, in order.
  package var files: [String]
  /// Those of them that hold profiles.
  package var profileFiles: [String]
  /// Mistakes that do not stop the gateway.
  package var warnings: [ConfigurationProblem]
}
