// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import JSONParsing
import LastOut
import Routing

/// Reads the payload of a state, availability or input topic: JSON, or a bare word.
enum StatePayload {
  /// The JSON value; a payload that is no JSON is a string.
  static func read(_ payload: Span<UInt8>) -> JSONValue {
    if let document = try? JSONParser.parse(payload) { return document }
    return .string(Text.of(payload))
  }

  /// The text of a scalar, without quotes.
  static func word(_ value: JSONValue) -> String {
    if case .string(let text) = value { text } else { JSONWriter.text(value) }
  }
}
