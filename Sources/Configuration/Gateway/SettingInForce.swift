// Settle
// SPDX-License-Identifier: Apache-2.0

/// One setting as it is in force, and where its value comes from.
package struct SettingInForce: Hashable, Sendable {
  /// As in the settings file, such as `mqtt.url`.
  package var name: String
  /// As text; of a secret only that it is set.
  package var value: String
  /// `default`, `FILE:LINE`, the name of a variable, or an option.
  package var origin: String

  /// The origin of a value that nothing states.
  package static let standard = "default"
}
