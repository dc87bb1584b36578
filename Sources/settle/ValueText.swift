// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import JSONParsing

/// Parses and formats values for the terminal.
enum ValueText {
  /// Parses a typed value: a JSON number, boolean, object or array, otherwise a text.
  ///
  /// The gateway converts it to the property's type.
  static func json(_ text: String) -> JSONValue {
    let unsigned = text.hasPrefix("+") ? String(text.dropFirst()) : text
    guard let value = try? JSONParser.parse(unsigned) else { return .string(text) }
    return switch value {
    case .integer, .number: value
    case .boolean, .array, .object: unsigned == text ? value : .string(text)
    case .null, .string: .string(text)
    }
  }

  /// A value for a table: texts without quotes, `-` for none.
  static func text(_ value: JSONValue?) -> String {
    switch value {
    case nil, .null: "-"
    case .string(let text): text
    case .some(let value): JSONWriter.text(value)
    }
  }

  /// A duration in short form: `0.3s`, `12s`, `5m`, `3h`, `2d`.
  static func age(_ milliseconds: Int?) -> String {
    guard let milliseconds else { return "-" }
    return switch milliseconds {
    case ..<10_000: JSONWriter.text(.number(Double(milliseconds / 100) / 10)) + "s"
    case ..<120_000: "\(milliseconds / 1000)s"
    case ..<7_200_000: "\(milliseconds / 60_000)m"
    case ..<172_800_000: "\(milliseconds / 3_600_000)h"
    default: "\(milliseconds / 86_400_000)d"
    }
  }
}
