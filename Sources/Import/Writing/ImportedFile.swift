// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON

/// One device or group in a device file.
struct FileDevice: Hashable, Sendable {
  var id: String
  var identity: String
  var comment: String
  var members: [JSONValue.Member]
  /// The properties that it has, with those that are the same in its profile.
  var properties: Set<String> = []

  /// The lines of the device or group, comment included.
  func text(indent: Int = 0) -> String {
    let margin = String(repeating: " ", count: indent)
    var lines = comment.isEmpty ? "" : "\(margin)# \(PlainText.clean(comment))\n"
    lines += "\(margin)\(id):\n"
    for member in members where member.name != "properties" {
      lines += YAMLText.entry(member.name, member.value, indent: indent + 2)
    }
    if let properties = members.first(where: { $0.name == "properties" })?.value.members {
      lines += "\(margin)  properties:\n"
      for property in properties { lines += Self.text(of: property, indent: indent + 4) }
    }
    return lines
  }

  /// Why its lines are no YAML, such as a key that appears twice; `nil` if they are.
  var mistake: String? {
    do throws(ConfigurationFailure) {
      _ = try YAMLOutline.read(Array(text().utf8), file: id)
      return nil
    } catch {
      return error.problems.first?.message ?? "it cannot be written as YAML"
    }
  }

  /// The lines of one property.
  static func text(of property: JSONValue.Member, indent: Int) -> String {
    YAMLText.entry(property.name, property.value, indent: indent)
  }
}

/// A new device file.
enum ImportedFile {
  /// The content of a new file with `devices` and `groups`.
  ///
  /// `schema` is where editors find the schema, seen from the file; `nil` if it is not installed.
  static func text(
    _ devices: [FileDevice],
    groups: [FileDevice],
    source: ImportSource,
    schema: String?
  ) -> String {
    header(source, schema: schema) + devices.map { "\n" + $0.text() }.joined() + section(of: groups)
  }

  /// The section `groups:`, or nothing.
  static func section(of groups: [FileDevice]) -> String {
    groups.isEmpty
      ? "" : "\ngroups:\n" + groups.map { $0.text(indent: 2) }.joined(separator: "\n")
  }

  private static func header(_ source: ImportSource, schema: String?) -> String {
    let line = schema.map { "# yaml-language-server: $schema=\($0)\n#\n" } ?? ""
    return line + """
      # Written by "settle import" from what \(source.title) announces.
      # Edit what you like: the next import keeps your edits, adds new devices, and lists those that are
      # gone.

      """
  }
}
