// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
package import JSON
internal import Values

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
      lines += "\(margin)  properties:\n" + YAMLText.block(properties, indent: indent + 4)
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

/// Writes values as readable YAML 1.2: words without quotes, short mappings on one line.
package enum YAMLText {
  /// The maximum length of a line.
  static let width = 100

  /// Writes `key: value` on one or more indented lines, each with a line break.
  package static func entry(_ key: String, _ value: JSONValue, indent: Int) -> String {
    let margin = String(repeating: " ", count: indent)
    let head = margin + Self.key(key) + ":"
    let line = "\(head) \(flow(value))"
    if line.count <= width || value.isScalar { return line + "\n" }
    switch value {
    case .object(let members) where !members.isEmpty:
      return head + "\n" + block(members, indent: indent + 2)
    case .array(let elements) where elements.contains(where: { !$0.isScalar }):
      return head + "\n"
        + elements.map { "\(margin)  - \(flow($0))\n" }.joined()
    default: return line + "\n"
    }
  }

  /// Writes the entries of a mapping, each on one or more lines.
  static func block(_ members: [JSONValue.Member], indent: Int) -> String {
    members.map { entry($0.name, $0.value, indent: indent) }.joined()
  }

  /// Writes a value on one line.
  static func flow(_ value: JSONValue) -> String {
    switch value {
    case .array(let elements): "[\(elements.map(flow).joined(separator: ", "))]"
    case .object(let members):
      "{" + members.map { "\(key($0.name)): \(flow($0.value))" }.joined(separator: ", ")
        + "}"
    case .null, .boolean, .integer, .number, .string: scalar(value)
    }
  }

  /// Writes a key.
  ///
  /// `on` and `off` need no quotes as keys.
  private static func key(_ name: String) -> String {
    name == "on" || name == "off" ? name : scalar(.string(name))
  }

  private static func scalar(_ value: JSONValue) -> String {
    guard case .string(let text) = value else { return JSONWriter.text(value) }
    return isPlain(text) ? text : quoted(text)
  }

  /// Whether `text` needs no quotes, even in a flow collection.
  private static func isPlain(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, !typed.contains(text), text.last != " " else {
      return false
    }
    if (try? DurationText.read(text)) != nil, text.last?.isLetter == true { return true }
    let begins =
      first.properties.isAlphabetic || first == "$" || first == "/" || first == "°" || first == "_"
    return begins
      && text.unicodeScalars.allSatisfy { scalar in
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", " ", "_", "-", "+", ".", "/", "$", "°", "(", ")", "=":
          true
        default: scalar.value > 0xBF && scalar.properties.isAlphabetic
        }
      }
  }

  /// Words that this or another YAML reader parses as another type.
  private static let typed: Set = [
    "true", "false", "null", "True", "False", "Null", "TRUE", "FALSE", "NULL", "y", "n", "Y", "N",
    "on", "off", "yes", "no", "On", "Off", "Yes", "No", "ON", "OFF", "YES", "NO",
  ]

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case _
      where Excerpt.escape(scalar) != nil || scalar.value == 0xFEFF
        || scalar.properties.generalCategory == .unassigned
        || scalar.properties.isNoncharacterCodePoint:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        let width = scalar.value > 0xFFFF ? 8 : 4
        result += scalar.value > 0xFFFF ? "\\U" : "\\u"
        result += String(repeating: "0", count: max(0, width - digits.count)) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

extension JSONValue {
  fileprivate var isScalar: Bool {
    switch self {
    case .null, .boolean, .integer, .number, .string: true
    case .array, .object: false
    }
  }
}
