// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// What the last import of one source wrote, kept beside the file that users edit.
struct ImportRecord: Hashable, Sendable {
  struct Entry: Hashable, Sendable {
    var identity: String
    var members: [JSONValue.Member]
  }

  /// The devices by identifier.
  var devices: [String: Entry] = [:]
  /// The entries of `groups:` by identifier.
  var groups: [String: Entry] = [:]

  init() {}

  /// The identifiers of devices by identity.
  var identifiers: [String: String] { Self.identifiers(devices) }

  /// The identifiers of groups by identity.
  var groupIdentifiers: [String: String] { Self.identifiers(groups) }

  /// The properties of a device that was imported; none without an identifier.
  func properties(of id: String?) -> Set<String> {
    let written = id.flatMap { devices[$0] }?.members.first { $0.name == "properties" }?.value
    return Set((written?.members ?? []).map(\.name))
  }

  private static func identifiers(_ entries: [String: Entry]) -> [String: String] {
    var result: [String: String] = [:]
    for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where result[entry.identity] == nil {
      result[entry.identity] = id
    }
    return result
  }

  /// Reads a record; `nil` if it is invalid, for example because it was edited.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONParser.parse(bytes.span), json["settle_import"] == 1,
      let devices = json["devices"]?.members.flatMap({ Self.entries($0) }),
      let groups = Self.entries(json["groups"]?.members ?? [])
    else { return nil }
    (self.devices, self.groups) = (devices, groups)
  }

  private static func entries(_ members: [JSONValue.Member]) -> [String: Entry]? {
    var entries: [String: Entry] = [:]
    for member in members {
      guard let identity = member.value["identity"]?.string,
        let written = member.value["written"]?.members
      else { return nil }
      entries[member.name] = Entry(identity: identity, members: written)
    }
    return entries
  }

  /// The record beside a file; an empty one if there is none, or an invalid one.
  init(of file: ImportPlan.ExistingFile?) {
    self = file?.record.flatMap { ImportRecord($0) } ?? ImportRecord()
  }

  /// The record with one line per device, in order, for readable differences in version control.
  var bytes: [UInt8] {
    var text = "{\"settle_import\":1,\"devices\":{" + Self.lines(devices) + "\n}"
    if !groups.isEmpty { text += ",\"groups\":{" + Self.lines(groups) + "\n}" }
    return Array((text + "}\n").utf8)
  }

  private static func lines(_ entries: [String: Entry]) -> String {
    entries.sorted { $0.key < $1.key }.map { entry in
      let value = JSONValue.object([
        "identity": .string(entry.value.identity), "written": .object(entry.value.members),
      ])
      return "\n" + JSONWriter.text(.string(entry.key)) + ":" + JSONWriter.text(value)
    }.joined(separator: ",")
  }
}
