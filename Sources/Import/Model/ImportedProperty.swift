// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// A property in the terms of a device file.
struct ImportedProperty: Hashable, Sendable {
  var id: String
  private(set) var fields: [JSONValue.Member] = []

  /// The order in which fields are written.
  private static let order = [
    "name", "aliases", "class", "category", "type", "range", "step", "unit", "display", "values",
    "on", "off", "scale",
    "encode", "decode", "policy", "excludes", "implies", "urgent", "ends", "command", "state",
    "confirm",
    "always",
  ]

  init(_ id: String, type: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) {
    self.id = id
    self["type"] = .string(type)
    for (name, value) in fields { self[name] = value }
  }

  /// A field; setting it keeps the fields in ``order``.
  subscript(name: String) -> JSONValue? {
    get { fields.first { $0.name == name }?.value }
    set {
      fields.removeAll { $0.name == name }
      guard let newValue else { return }
      let rank = Self.rank(name)
      let index = fields.firstIndex { Self.rank($0.name) > rank } ?? fields.endIndex
      fields.insert(JSONValue.Member(name, newValue), at: index)
    }
  }

  /// Its identifier and its aliases.
  var names: [String] { [id] + (self["aliases"]?.elements ?? []).compactMap(\.string) }

  /// Whether only the device changes it.
  var isReadOnly: Bool { self["command"] == nil }

  /// Renames the properties that this one ends, excludes or implies; `nil` removes one.
  mutating func renameOthers(_ rename: (String) -> String?) {
    for key in ["ends", "excludes"] {
      guard let others = self[key]?.elements?.compactMap(\.string) else { continue }
      let present = others.compactMap(rename)
      self[key] = present.isEmpty ? Optional.none : .array(present.map { .string($0) })
    }
    guard let implied = self["implies"]?.members else { return }
    let present = implied.compactMap { member in
      rename(member.name).map { JSONValue.Member($0, member.value) }
    }
    self["implies"] = present.isEmpty ? Optional.none : .object(present)
    self["command"] = self["command"]?.replacingTexts { text in
      PayloadTemplate.impliedName(text).map { .string(PayloadTemplate.implied(rename($0) ?? $0)) }
    }
  }

  /// Sets `command`.
  ///
  /// `payload` is a structure with `$value`, or `nil` for the bare value.
  mutating func setCommand(to topic: String, _ payload: JSONValue? = nil, qos: Int64? = nil) {
    var members = [JSONValue.Member("topic", .string(topic))]
    if let payload, payload != .string(PayloadTemplate.placeholder) {
      members.append(JSONValue.Member("payload", payload))
    }
    if let qos, qos != 1 { members.append(JSONValue.Member("qos", .integer(qos))) }
    self["command"] = .object(members)
  }

  /// Sets `state`.
  ///
  /// `get` is the request for the state, if the device accepts one.
  mutating func setState(on topic: String, at pointer: String = "", get: JSONValue? = nil) {
    var members = [JSONValue.Member("topic", .string(topic))]
    if !pointer.isEmpty { members.append(JSONValue.Member("value", .string(pointer))) }
    if let get { members.append(JSONValue.Member("get", get)) }
    self["state"] = .object(members)
  }

  private static func rank(_ name: String) -> Int { order.firstIndex(of: name) ?? order.count }
}

/// Text in which `$name` is a placeholder.
enum PlaceholderText {
  /// Escapes every `$` in `text`.
  static func escaped(_ text: String) -> String {
    text.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$")
  }

  /// Expands `$topic` and `$$`.
  static func expanded(_ text: String, topic: String) -> String {
    let mark = "\u{0}"
    return text.replaced("$$", by: mark).replaced("$topic", by: topic).replaced(mark, by: "$")
  }

  /// A JSON Pointer along `path`, with every `$` escaped.
  static func pointer(_ path: [String]) -> String {
    escaped(JSONPointer(tokens: path).text)
  }
}

extension ImportedProperty {
  /// Lets people read a lamp's brightness in percent and its white tone in kelvin.
  mutating func setDisplay() {
    if id.hasPrefix("brightness"), self["range"] == [0, 254] {
      let scale: JSONValue = .object(["from": [0, 254], "to": [0, 100]])
      self["display"] = .object(["unit": "%", "scale": scale])
    } else if id.hasPrefix("color_temp"), self["unit"] == "mired",
      (self["range"]?.elements?.first?.double ?? 0) > 0
    {
      // Kelvin of 0 mired and less is no number.
      self["display"] = .object(["unit": "K", "scale": "mired"])
    }
  }
}
