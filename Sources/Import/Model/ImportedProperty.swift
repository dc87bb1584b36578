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

  init(_ id: String, type: String) {
    self.id = id
    self["type"] = .string(type)
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

  /// What people see where no name is stated: `valve_alarm` becomes `Valve alarm`.
  static func title(of id: String) -> String {
    let words = id.split { $0 == "_" || $0 == "-" }.joined(separator: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
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

/// Templates of commands and states as fields of a device file.
extension ImportedProperty {
  /// The payload of a command whose template has the meaning `form`; sets `scale` or `values` if
  /// that expresses it, and returns `nil` if nothing does.
  mutating func payload(of form: TemplateForm?) -> JSONValue? {
    let bare = JSONValue.string(PayloadTemplate.placeholder)
    let isNumber = self["range"] != nil || self["type"] == "number"
    switch form {
    case .linear(_, 1, 0): return bare
    case .linear(_, let factor, let offset):
      guard isNumber, let scale = scale(factor, offset) else { return nil }
      self["scale"] = scale
      return bare
    case .lookedUp(_, let table):
      guard let values = values(in: table) else { return nil }
      self["values"] = values
      return bare
    case .structure(let structure, let isText, let factor, let offset):
      guard isText != (isNumber || hasNumbers) else { return nil }
      guard factor != 1 || offset != 0 else { return structure }
      guard isNumber, let scale = scale(factor, offset) else { return nil }
      self["scale"] = scale
      return structure
    case .condition, .presence, .number, .text, .table, nil: return nil
    }
  }

  /// Whether all wire values of its words are other than text.
  private var hasNumbers: Bool {
    self["values"]?.members?.allSatisfy { $0.value.string == nil } ?? false
  }

  /// The path of the value in a report whose template has the meaning `form`; `nil` unless its
  /// conversion is the inverse of the command's, or can be stated in `decode`.
  mutating func path(of form: TemplateForm?) -> [String]? {
    switch form {
    case .linear(let path, let factor, let offset):
      inverts(factor: factor, offset: offset) ? path : nil
    case .lookedUp(let path, let table): inverts(table) || decodes(table) ? path : nil
    case .condition(let path, let constant, let then, let otherwise):
      isFlag(constant, then, otherwise) ? path : nil
    case .presence, .structure, .number, .text, .table, nil: nil
    }
  }

  /// Whether a report of `constant` means what the word `then` means, and the opposite the other.
  ///
  /// A number may be a level, of which only 0 is known.
  private func isFlag(_ constant: JSONValue, _ then: String, _ otherwise: String) -> Bool {
    guard self["type"] == "boolean", constant.double == nil, let flag = ValueKind.flag(constant)
    else { return false }
    let on = self["on"]?.scalarText ?? "true"
    let off = self["off"]?.scalarText ?? "false"
    return (then, otherwise) == (flag ? (on, off) : (off, on))
  }

  /// The path of a reading in a report whose template has the meaning `form`; sets `scale` if that
  /// expresses it, and returns `nil` if nothing does.
  mutating func path(ofReading form: TemplateForm?) -> [String]? {
    if case .condition? = form { return path(of: form) }
    if case .lookedUp(let path, let table)? = form { return setWords(table) ? path : nil }
    guard case .linear(let path, let factor, let offset)? = form else { return nil }
    if factor == 1, offset == 0 { return path }
    guard self["type"] == "number", factor != 0, factor.isFinite, offset.isFinite else {
      return nil
    }
    self["scale"] = .object([
      "from": .array([offset, 100 * factor + offset].map { JSONValue(shortest: Self.tidy($0)) }),
      "to": [0, 100], "decimals": 3,
    ])
    return path
  }

  /// Makes a reading of words a choice of those in a table of reports and their words.
  ///
  /// - Returns: Whether they are words.
  private mutating func setWords(_ table: [JSONValue.Member]) -> Bool {
    let words = table.compactMap { entry in
      entry.value.scalarText.map { (word: $0, wire: JSONValue.string(entry.name)) }
    }
    guard self["type"] == "text" || self["type"] == "choice", words.count == table.count else {
      return false
    }
    let isOneToOne = Set(words.map(\.word)).count == words.count
    let values =
      isOneToOne
      ? ChoiceWords.field(words) : ChoiceWords.field(words.map { ($0.word, .string($0.word)) })
    guard let values else { return false }
    self["type"] = "choice"
    self["values"] = values
    return isOneToOne || decodes(table)
  }

  /// Whether `reported * factor + offset` is the inverse of the command's conversion.
  func inverts(factor: Double, offset: Double) -> Bool {
    guard let scale = self["scale"], let from = scale.elements("from")?.compactMap(\.double),
      let to = scale.elements("to")?.compactMap(\.double)
    else {
      let isMapped =
        self["type"] == "choice"
        && self["values"]?.members?.contains { $0.value.scalarText != $0.name } ?? false
      return factor == 1 && offset == 0 && !isMapped
    }
    return zip(from, to).allSatisfy { here, there in
      (there * factor + offset - here).magnitude <= 0.02 * max(1, (from[1] - from[0]).magnitude)
    }
  }

  /// Sets what is reported for each word of a choice, as a table has it.
  ///
  /// - Returns: Whether the table has some of its words.
  private mutating func decodes(_ table: [JSONValue.Member]) -> Bool {
    guard self["type"] == "choice", let values = self["values"] else { return false }
    let words = values.members?.map(\.name) ?? values.elements?.compactMap(\.scalarText) ?? []
    let reports = words.compactMap { word -> JSONValue.Member? in
      let keys = table.filter { $0.value.scalarText == word }.map { JSONValue.string($0.name) }
      if keys.isEmpty || keys == [.string(word)] { return nil }
      return JSONValue.Member(word, keys.count == 1 ? keys[0] : .array(keys))
    }
    if !reports.isEmpty { self["decode"] = .object(reports) }
    return table.contains { words.contains($0.value.scalarText ?? "") }
  }

  private func inverts(_ table: [JSONValue.Member]) -> Bool {
    guard let words = self["values"]?.members else { return false }
    return words.allSatisfy { word in
      table.contains { entry in
        entry.value.scalarText == word.name && entry.name == word.value.scalarText
      }
    }
  }

  private func values(in table: [JSONValue.Member]) -> JSONValue? {
    guard let words = self["values"]?.elements?.compactMap(\.string) else { return nil }
    let known = words.compactMap { word in
      table.first { $0.name == word }.map { (word: word, wire: $0.value) }
    }
    return known.count == words.count ? ChoiceWords.field(known) : nil
  }

  private func scale(_ factor: Double, _ offset: Double) -> JSONValue? {
    guard let ends = self["range"]?.elements?.compactMap(\.double), ends.count == 2,
      factor != 0
    else { return nil }
    let wire = ends.map { JSONValue(shortest: Self.tidy(factor * $0 + offset)) }
    return .object([
      "from": .array(ends.map { JSONValue(shortest: $0) }), "to": .array(wire),
    ])
  }

  /// Removes the rounding error of binary fractions.
  private static func tidy(_ number: Double) -> Double {
    (number * 1_000_000).rounded() / 1_000_000
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
