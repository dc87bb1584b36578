// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON

/// One device in a device file.
struct FileDevice: Hashable, Sendable {
  var id: String
  var identity: String
  var comment: String
  var members: [JSONValue.Member]

  /// The lines of the device, comment included.
  var text: String {
    var lines = comment.isEmpty ? "" : "# \(PlainText.clean(comment))\n"
    lines += "\(id):\n"
    for member in members where member.name != "properties" {
      lines += YAMLText.entry(member.name, member.value, indent: 2)
    }
    if let properties = members.first(where: { $0.name == "properties" })?.value.members {
      lines += "  properties:\n"
      for property in properties { lines += Self.text(of: property, indent: 4) }
    }
    return lines
  }

  /// Why its lines are no YAML, such as a key that appears twice; `nil` if they are.
  var mistake: String? {
    do throws(ConfigurationFailure) {
      _ = try YAMLOutline.read(Array(text.utf8), file: id)
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
  /// The content of a new file with `devices`.
  ///
  /// `schema` is where editors find the schema, seen from the file; `nil` if it is not installed.
  static func text(_ devices: [FileDevice], source: ImportSource, schema: String?) -> String {
    header(source, schema: schema) + devices.map { "\n" + $0.text }.joined()
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
