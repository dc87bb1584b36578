// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

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
    if text == PayloadTemplate.identity, parameters[name] == nil { return nil }
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
