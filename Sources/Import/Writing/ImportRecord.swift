// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import JSONParsing

/// What the last import of one source wrote, kept beside the file that users edit.
struct ImportRecord: Hashable, Sendable {
  struct Entry: Hashable, Sendable {
    var identity: String
    var members: [JSONValue.Member]
  }

  /// The devices by identifier.
  var devices: [String: Entry] = [:]

  init() {}

  /// The identifiers by identity.
  var identifiers: [String: String] {
    var result: [String: String] = [:]
    for (id, entry) in devices.sorted(by: { $0.key < $1.key }) where result[entry.identity] == nil {
      result[entry.identity] = id
    }
    return result
  }

  /// Reads a record; `nil` if it is invalid, for example because it was edited.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONParser.parse(bytes.span), json["settle_import"] == 1,
      let members = json["devices"]?.members
    else { return nil }
    for member in members {
      guard let identity = member.value["identity"]?.string,
        let written = member.value["written"]?.members
      else { return nil }
      devices[member.name] = Entry(identity: identity, members: written)
    }
  }

  /// The record with one line per device, in order, for readable differences in version control.
  var bytes: [UInt8] {
    var text = "{\"settle_import\":1,\"devices\":{"
    for (number, entry) in devices.sorted(by: { $0.key < $1.key }).enumerated() {
      text += number == 0 ? "\n" : ",\n"
      let value = JSONValue.object([
        "identity": .string(entry.value.identity), "written": .object(entry.value.members),
      ])
      text += JSONWriter.text(.string(entry.key)) + ":" + JSONWriter.text(value)
    }
    return Array((text + "\n}}\n").utf8)
  }
}
