// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// The settings that `settle init` writes.
package struct SetupSettings: Hashable, Sendable {
  package var url: String
  package var username: String?
  /// Whether there is a file with the password beside the settings.
  package var hasPassword = false
  package var usesMQTT5 = true
  /// PEM files for TLS, as absolute paths.
  package var ca: String?
  package var certificate: String?
  package var key: String?
  /// Whether Zigbee devices share a lane.
  package var hasZigbee = false
  /// The journal's file, from the folder of the settings; `nil` for none.
  package var journal: String?
  /// Where editors find the schema of settings; `nil` for nowhere.
  package var schema: String?

  package init(url: String) { self.url = url }

  /// The file's content.
  package var text: String {
    let head = schema.map { "# yaml-language-server: $schema=\($0)\n#\n" } ?? ""
    return head + """
      # Settings of the gateway, written by "settle init". "settle check --config FILE" checks them.

      mqtt:
      \(broker)
      devices: devices        # the folder beside this file; its *.yaml describe the devices
      \(lanes)\(journalLine)
      # The panel for a browser on this machine, and the HTTP API:
      # http: {listen: [127.0.0.1:8484]}

      """
  }

  private var broker: String {
    // A word of YAML may contain colons that no blank follows.
    let isPlain = url.utf8.allSatisfy { byte in
      byte > 0x2C && byte < 0x7B && !"\\^`<>?;=".utf8.contains(byte)
    }
    var lines = isPlain ? "  url: \(url)\n" : YAMLText.entry("url", .string(url), indent: 2)
    if let username { lines += YAMLText.entry("username", .string(username), indent: 2) }
    if hasPassword {
      lines += YAMLText.entry("password_file", .string(SetupFolder.passwordName), indent: 2)
    }
    for (name, path) in [("ca", ca), ("cert", certificate), ("key", key)] {
      if let path { lines += YAMLText.entry(name, .string(path), indent: 2) }
    }
    if !usesMQTT5 { lines += "  protocol: 3.1.1\n" }
    return lines
  }

  private var lanes: String {
    guard hasZigbee else { return "" }
    return """

      # A Zigbee mesh carries few messages at a time, so its devices share a window, which adapts.
      lanes:
        zigbee: {window: auto}

      """
  }

  private var journalLine: String {
    guard let journal else { return "" }
    let line = YAMLText.entry("journal", .object([.init("path", .string(journal))]), indent: 0)
    return "\n# What was accepted survives a crash.\n" + line
  }
}
