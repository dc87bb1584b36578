// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Why a change is rejected.
///
/// The description is safe for a terminal and never quotes long input.
package enum ValidationError: Error, Hashable, Sendable {
  case unknownDevice(String, suggestion: String?)
  /// `has` are the properties of the device, where they are looked up.
  case unknownProperty(String, device: String, suggestion: String?, has: [String] = [])
  case unknownScene(String, suggestion: String?)
  case invalidKey(String, suggestion: String? = nil)
  /// Neither a key nor a device, where both are allowed.
  case unknownName(String, suggestion: String?)
  case wrongType(found: String, expected: String, suggestion: String?)
  /// What is wrong with one of several properties that are set together.
  indirect case inProperty(String, ValidationError)
  case outOfRange(found: String, allowed: String)
  case notAChoice(found: String, allowed: [String], suggestion: String?)
  /// A `step` or `toggle` that the property's type does not support.
  case unsupported(String)
  /// A `step` or `toggle` while no value of the property is known.
  case noBase
  /// The limit of keys with a pending value is reached.
  case tooManyPending(limit: Int)
  /// So many commands of an action wait already.
  case tooManyActions(String, limit: Int)
  /// A group of changes that is accepted or rejected as a whole does not fit: it needs `needed`
  /// more pending values and there is room for `free`.
  case noRoomForAll(needed: Int, free: Int, limit: Int)
  /// The journal cannot store the change.
  case notDurable(String)
  /// The gateway is shutting down and accepts no more changes.
  case shuttingDown
  /// A person changed the property lately, and the change is another source's.
  case held(by: String)
}

extension ValidationError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unknownDevice(let id, let suggestion):
      "no device '\(Excerpt.of(id))'\(Self.question(suggestion))"
    case .unknownProperty(let id, let device, let suggestion, let others):
      "device '\(Excerpt.of(device))' has no property '\(Excerpt.of(id))'"
        + Self.question(suggestion)
        + (others.isEmpty ? "" : "\(suggestion == nil ? "; it" : " It") has \(Self.list(others))")
    case .unknownScene(let id, let suggestion):
      "no scene '\(Excerpt.of(id))'\(Self.question(suggestion))"
    case .invalidKey(let key, let suggestion):
      "'\(Excerpt.of(key))' is no key; a key is DEVICE/PROPERTY\(Self.question(suggestion))"
    case .unknownName(let name, let suggestion):
      "no device or key '\(Excerpt.of(name))'\(Self.question(suggestion))"
    case .inProperty(let property, let error): "\(property): \(error.description)"
    case .wrongType(let found, let expected, let suggestion):
      "found \(Excerpt.of(found)), expected \(expected)\(Self.question(suggestion))"
    case .outOfRange(let found, let allowed): "\(Excerpt.of(found)) is outside \(allowed)"
    case .notAChoice(let found, let allowed, let suggestion):
      "found \(Excerpt.of(found)), allowed: \(Self.list(allowed))\(Self.question(suggestion))"
    case .unsupported(let message), .notDurable(let message): message
    case .noBase:
      "nothing to count from: no value is pending, in flight or known; set a value first"
    case .tooManyPending(let limit):
      "\(limit) keys have a pending value already, which is the limit"
    case .tooManyActions(let key, let limit):
      "\(limit) commands of \(key) wait to be sent already, which is the limit for an action"
    case .noRoomForAll(let needed, let free, let limit):
      "nothing of it was taken: \(needed) more values would be pending, and there is room for "
        + "\(free) (limits.pending is \(limit))"
    case .shuttingDown: "the gateway is shutting down"
    case .held(let source): "held by \(Excerpt.of(source))"
    }
  }

  private static func question(_ suggestion: String?) -> String {
    suggestion.map { "; did you mean '\(Excerpt.of($0))'?" } ?? ""
  }

  private static func list(_ words: [String]) -> String {
    let shown = words.prefix(20).map { Excerpt.of($0) }.joined(separator: ", ")
    return words.count > 20 ? "\(shown), and \(words.count - 20) more" : shown
  }
}

/// Makes input safe to quote in a message: short, on one line, without control characters.
package enum Excerpt {
  /// At most `limit` characters of `text`, with control characters escaped.
  package static func of(_ text: String, limit: Int = 60) -> String {
    var result = ""
    var count = 0
    for scalar in text.unicodeScalars {
      if count == limit { return result + "…" }
      count += 1
      if let escape = escape(scalar) {
        result += escape
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// All of `text` with its control characters escaped, so that it cannot control a terminal.
  package static func visible(_ text: String, keepingLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: { escape($0) != nil }) else { return text }
    return text.unicodeScalars.map { scalar in
      keepingLines && scalar == "\n" ? "\n" : escape(scalar) ?? String(scalar)
    }.joined()
  }

  /// The escape sequence for a character that controls a terminal or breaks the line; `nil` for
  /// all others.
  package static func escape(_ scalar: Unicode.Scalar) -> String? {
    switch scalar.value {
    case 0x0A: "\\n"
    case 0x09: "\\t"
    case 0x0D: "\\r"
    case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
      "\\u{\(String(scalar.value, radix: 16))}"
    default: nil
    }
  }

  /// A short description of a value: text in quotes, arrays and objects by type only.
  package static func of(_ value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .boolean, .integer, .number: JSONWriter.text(value)
    case .string(let text): "'\(of(text))'"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
