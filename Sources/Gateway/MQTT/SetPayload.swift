// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import JSONParsing
import LastOut
import Routing
import Values

/// Reads the payload of a `…/set` topic: a bare value, JSON, or an envelope with the value, an id
/// and a source.
enum SetPayload {
  struct Envelope {
    let id: JSONValue?
    let source: String?
    let content: JSONValue

    /// The value inside; throws for members that an envelope does not have.
    func value() throws(ValidationError) -> JSONValue {
      guard case .object(let members) = content, let value = content["value"] else {
        return content
      }
      for member in members where !["value", "id", "source"].contains(member.name) {
        throw .wrongType(
          found: "member '\(Excerpt.of(member.name))' beside 'value'",
          expected: "id or source",
          suggestion: nil
        )
      }
      return value
    }
  }

  /// The envelope, if the payload is one.
  static func envelope(_ payload: Span<UInt8>) -> Envelope? {
    guard first(of: payload) == UInt8(ascii: "{") else { return nil }
    guard let document = try? JSONParser.parse(payload),
      document["value"] != nil
    else { return nil }
    return Envelope(id: document["id"], source: document["source"]?.string, content: document)
  }

  /// Reads a payload that is no envelope.
  static func value(
    _ payload: Span<UInt8>,
    of key: KeyIndex,
    in registry: Registry
  ) throws(ValidationError) -> Value {
    switch first(of: payload) {
    case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\""):
      return try registry.value(from: try document(payload), of: key)
    case nil:
      throw .wrongType(found: "an empty payload", expected: "a value", suggestion: nil)
    default:
      return try registry.value(fromPayload: payload, of: key)
    }
  }

  /// The members of a device-level set.
  static func members(_ payload: Span<UInt8>) throws(ValidationError) -> [JSONValue.Member] {
    guard case .object(let members) = try document(payload) else {
      throw .wrongType(
        found: "'\(Excerpt.of(Text.of(payload)))'",
        expected: "a JSON object of properties",
        suggestion: nil
      )
    }
    return members
  }

  private static func document(_ payload: Span<UInt8>) throws(ValidationError) -> JSONValue {
    do throws(JSONParseError) {
      return try JSONParser.parse(payload)
    } catch {
      throw .wrongType(
        found: "'\(Excerpt.of(Text.of(payload)))'",
        expected: "JSON (\(error.message), column \(error.column))",
        suggestion: nil
      )
    }
  }

  private static func first(of payload: Span<UInt8>) -> UInt8? {
    for position in payload.indices {
      switch payload[position] {
      case 0x20, 0x09, 0x0A, 0x0D: continue
      default: return payload[position]
      }
    }
    return nil
  }
}
