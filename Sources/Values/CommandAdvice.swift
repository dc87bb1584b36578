// Settle
// SPDX-License-Identifier: Apache-2.0

/// Commands that a person is advised to run, as lines for a shell.
package enum CommandAdvice {
  /// The settings file that commands find by themselves.
  package static let standardSettings = "/etc/settle/settle.yaml"

  /// What a person is told where nothing names settings, and none are found.
  package static let noSettings =
    "No settings file was found (looked at \(standardSettings)); name yours with --config FILE"
    + " or SETTLE_CONFIG"

  /// `settle NAME`, with `--config` unless the settings are those that every command finds.
  package static func settle(_ name: String, settings: String?) -> String {
    guard let settings, settings != standardSettings else { return "settle \(name)" }
    return "settle \(name) --config \(quoted(settings))"
  }

  /// A path as one word of a shell.
  private static func quoted(_ path: String) -> String {
    let marks = "/._-+@%0123456789".unicodeScalars
    let isPlain = path.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || marks.contains($0)
    }
    return isPlain ? path : "'" + path.replaced("'", by: #"'\''"#) + "'"
  }
}
