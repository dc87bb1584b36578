// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// A property in the words of a device file.
struct ImportedProperty: Hashable, Sendable {
  var id: String
  private(set) var fields: [JSONValue.Member] = []

  /// The order in which fields are written.
  private static let order = [
    "name", "aliases", "type", "range", "step", "unit", "values", "on", "off", "scale", "encode",
    "policy", "excludes", "urgent", "ends", "command", "state", "confirm", "always",
  ]

  init(_ id: String, type: String) {
    self.id = id
    self["type"] = .string(type)
  }

  /// A field; setting keeps the order of device files.
  subscript(name: String) -> JSONValue? {
    get { fields.first { $0.name == name }?.value }
    set {
      fields.removeAll { $0.name == name }
      guard let newValue else { return }
      let rank = Self.rank(name)
      let place = fields.firstIndex { Self.rank($0.name) > rank } ?? fields.endIndex
      fields.insert(JSONValue.Member(name, newValue), at: place)
    }
  }

  /// Where values go: a structure with `$value`, or nothing for the bare value.
  mutating func sends(to topic: String, _ payload: JSONValue? = nil, qos: Int64? = nil) {
    var members = [JSONValue.Member("topic", .string(topic))]
    if let payload, payload != .string(PayloadTemplate.placeholder) {
      members.append(JSONValue.Member("payload", payload))
    }
    if let qos, qos != 1 { members.append(JSONValue.Member("qos", .integer(qos))) }
    self["command"] = .object(members)
  }

  /// Where the value is reported.
  mutating func reports(on topic: String, at pointer: String = "", get: JSONValue? = nil) {
    var members = [JSONValue.Member("topic", .string(topic))]
    if !pointer.isEmpty { members.append(JSONValue.Member("value", .string(pointer))) }
    if let get { members.append(JSONValue.Member("get", get)) }
    self["state"] = .object(members)
  }

  private static func rank(_ name: String) -> Int { order.firstIndex(of: name) ?? order.count }
}

/// Topics and pointers in which `$name` stands for something.
enum DollarText {
  /// `text` such that each `$` in it means itself.
  static func literal(_ text: String) -> String {
    text.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$")
  }

  /// `$topic` and `$$` filled in.
  static func expanded(_ text: String, topic: String) -> String {
    let mark = "\u{0}"
    return text.replacing("$$", with: mark).replacing("$topic", with: topic)
      .replacing(mark, with: "$")
  }

  /// A JSON Pointer to the member `name`, such that no `$` in it stands for something.
  static func pointer(_ path: [String]) -> String {
    literal(
      path.map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") }.joined()
    )
  }
}
