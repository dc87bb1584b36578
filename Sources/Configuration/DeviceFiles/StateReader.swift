// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON
import Values

/// Reads `state:`, the topics on which a property is reported.
struct StateReader {
  let placeholders: Placeholders
  let problems: Problems

  /// Reads one mapping or a list of mappings; `none` means no sources.
  func sources(_ property: Section) -> [StateSource] {
    guard let node = property["state"], node.text != "none" else { return [] }
    if let elements = node.elements {
      return elements.compactMap { element in
        Section(element, .state, problems, what: "state").flatMap { source($0) }
      }
    }
    return property.nested("state", .state).flatMap { source($0) }.map { [$0] } ?? []
  }

  private func source(_ fields: Section) -> StateSource? {
    let pointer = fields.pointer("value", placeholders)
    let request = request(fields)
    let acknowledges = fields.flag("acknowledges")
    let error = fields.pointer("error", placeholders)
    let reply = fields.pointer("id", placeholders).map { ReplySource(id: $0, error: error) }
    if reply == nil, let node = fields["error"] {
      problems.add(node.position, "error: needs 'id', which identifies the refused message")
    }
    guard let topic = fields.topic("topic", placeholders) else { return nil }
    return StateSource(
      topic: topic,
      value: pointer ?? .whole,
      get: request,
      acknowledges: acknowledges ?? (reply != nil),
      reply: reply
    )
  }

  private func request(_ fields: Section) -> StateRequest? {
    if fields["get"]?.text == "none" { return nil }
    guard let get = fields.nested("get", .stateGet) else { return nil }
    let topic = get.topic("topic", placeholders)
    var payload: [UInt8] = []
    var members: [JSONValue.Member]?
    if let node = get["payload"] {
      let structure = node.json(problems) { text, scalar in
        placeholders.payloadValue(text, at: scalar.position)
      }
      guard let structure else { return nil }
      if PayloadTemplate(structure).carriesValue {
        problems.add(node.position, "get: a request for the state has no '$value'")
      }
      if case .object(let found) = structure { members = found }
      if structure != .null { PayloadTemplate(structure).render(.null, into: &payload) }
    }
    guard let topic else { return nil }
    // What is published must be what the file says: no placeholder is left in it.
    if let members, JSONWriter.bytes(.object(members)) == payload {
      return StateRequest(topic: topic, members: members)
    }
    return StateRequest(topic: topic, payload: payload)
  }
}

/// Reads `availability:`, the topics that report whether a device is online.
struct AvailabilityReader {
  let placeholders: Placeholders
  let problems: Problems

  /// Reads one mapping or a list of mappings; `none` means no sources.
  func sources(_ section: Section) -> [AvailabilitySource] {
    guard let node = section["availability"], node.text != "none" else { return [] }
    return (node.elements ?? [node]).compactMap { source($0) }
  }

  private func source(_ node: YAMLNode) -> AvailabilitySource? {
    guard let section = Section(node, .availability, problems, what: "availability") else {
      return nil
    }
    let pointer = section.pointer("value", placeholders)
    let other = section.choice("else", of: ["online", "offline"])
    let online = other == "online" ? .null : scalar(section, "online", else: "online")
    let offline = other == "offline" ? .null : scalar(section, "offline", else: "offline")
    guard let topic = section.topic("topic", placeholders), let online, let offline else {
      return nil
    }
    if online.isSameScalar(as: offline) {
      problems.add(section.position, "availability: 'online' and 'offline' are the same")
    }
    return AvailabilitySource(
      topic: topic,
      value: pointer ?? .whole,
      online: online,
      offline: offline,
      isBelowDevice: placeholders.topic.map { topic.hasPrefix($0 + "/") } ?? false
    )
  }

  private func scalar(
    _ section: Section,
    _ key: String,
    else standard: JSONValue
  ) -> JSONValue? {
    guard let node = section[key] else { return standard }
    return section.scalars(node, key, expected: "a word, number, true or false, or a list of them")
  }
}

extension Section {
  /// A word, number, true or false at `node`, or a list of them; messages name `key`.
  func scalars(_ node: YAMLNode, _ key: String, expected: String) -> JSONValue? {
    let words = (node.elements ?? [node]).compactMap(\.scalarJSON).filter { $0 != .null }
    guard !words.isEmpty, words.count == node.elements?.count ?? 1 else {
      return reject(node, key, expected: expected)
    }
    return words.count == 1 ? words[0] : .array(words)
  }

  /// A required topic name with its placeholders expanded.
  func topic(_ key: String, _ placeholders: Placeholders) -> String? {
    guard let node = self[key] else {
      missing(key, "the topic's name is needed")
      return nil
    }
    guard let text = text(key, expected: "a topic"),
      let topic = placeholders.expand(text, at: node.position)
    else { return nil }
    if let problem = Topic.problem(inName: topic) {
      problems.add(node.position, "\(key): \(problem)")
      return nil
    }
    return topic
  }

  /// A JSON Pointer with its placeholders expanded.
  func pointer(_ key: String, _ placeholders: Placeholders?) -> JSONPointer? {
    guard let node = self[key] else { return nil }
    guard let text = node.text, !node.isNull || text.isEmpty else {
      return reject(node, key, expected: "a JSON Pointer such as /state")
    }
    guard let expanded = placeholders.map({ $0.expand(text, at: node.position) }) ?? text else {
      return nil
    }
    guard let pointer = JSONPointer(expanded) else {
      return reject(
        node,
        key,
        expected: "a JSON Pointer such as /state, or \"\" for the whole payload",
        suggestion: JSONPointer("/\(expanded)") == nil ? nil : "/\(expanded)"
      )
    }
    return pointer
  }
}

/// Expands `$topic`, `$root` and a profile's parameters in topics, pointers and payloads.
struct Placeholders {
  /// The device's own topic.
  var topic: String?
  /// Whether the device's topic is missing for a reason that is reported already.
  var isTopicReported = false
  var parameters: [String: JSONValue] = [:]
  /// The device's position, for reports of missing keys.
  let device: SourcePosition
  let problems: Problems

  /// Names that a parameter cannot have.
  static let reserved = ["topic", "root", "value"]

  /// `$$` stands for `$`.
  private static let escape: [UInt8] = [UInt8(ascii: "$"), UInt8(ascii: "$")]

  /// Replaces every `$name` in `text`.
  ///
  /// Reports an unknown name and returns `nil`.
  func expand(_ text: String, at position: SourcePosition) -> String? {
    var isKnown = true
    let result = Self.replacingNames(in: text, unescaping: true) { name in
      guard isKnown else { return nil }  // One report for each text.
      let value = value(of: name, at: position)
      isKnown = value != nil
      return value
    }
    return isKnown ? result : nil
  }

  /// Replaces the parameters in `text`, and leaves any other `$`.
  func expandParameters(_ text: String) -> String {
    Self.replacingNames(in: text, unescaping: false) { parameters[$0] }
  }

  /// Replaces each `$name` that has a value; with `unescaping`, `$$` becomes `$`.
  private static func replacingNames(
    in text: String,
    unescaping: Bool,
    by value: (String) -> JSONValue?
  ) -> String {
    guard text.utf8.contains(UInt8(ascii: "$")) else { return text }
    var result: [UInt8] = []
    let bytes = Array(text.utf8)
    var index = 0
    while index < bytes.count {
      if unescaping, bytes[index...].starts(with: escape) {
        result.append(UInt8(ascii: "$"))
        index += 2
      } else if bytes[index] == UInt8(ascii: "$"), let name = name(in: bytes, at: index + 1),
        let replacement = value(name)
      {
        replacement.appendBare(to: &result)
        index += 1 + name.utf8.count
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The value of a payload's string that is exactly `$name`; `nil` for any other string.
  func payloadValue(_ text: String, at position: SourcePosition) -> JSONValue? {
    guard text.utf8.first == UInt8(ascii: "$"), text != PayloadTemplate.placeholder else {
      return nil
    }
    let bytes = Array(text.utf8)
    guard let name = Self.name(in: bytes, at: 1), name.utf8.count == bytes.count - 1 else {
      return nil
    }
    // A profile's parameter of the same name has precedence.
    let isOfMessage = [PayloadTemplate.identity, PayloadTemplate.textPlaceholder].contains(text)
    if isOfMessage, parameters[name] == nil { return nil }
    return value(of: name, at: position) ?? .null
  }

  private func value(of name: String, at position: SourcePosition) -> JSONValue? {
    if let parameter = parameters[name] { return parameter }
    switch name {
    case "topic", "root":
      guard let topic else {
        if !isTopicReported {
          problems.add(device, "'topic' is missing: the device's topics use '$topic'")
        }
        return nil
      }
      if name == "topic" { return .string(topic) }
      return .string(String(topic.prefix { $0 != "/" }))
    case "value":
      problems.add(position, "'$value' belongs in the payload, not here")
      return nil
    default:
      let known = ["topic", "root"] + parameters.keys.sorted()
      problems.add(
        position,
        "'$\(Excerpt.of(name))' has no meaning here; known: "
          + Section.list(known.map { "$\($0)" } + [PayloadTemplate.placeholder]),
        suggestion: Suggestion.nearest(to: name, in: known + ["value"]).map { "$\($0)" }
      )
      return nil
    }
  }

  /// The lowercase letters at `start`.
  private static func name(in bytes: [UInt8], at start: Int) -> String? {
    let letters = bytes[start...].prefix { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    return letters.isEmpty ? nil : String(decoding: letters, as: UTF8.self)
  }
}
