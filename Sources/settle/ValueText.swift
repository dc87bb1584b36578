// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import JSONParsing
import Values

/// Parses and formats values for the terminal.
enum ValueText {
  /// Parses a typed value: a JSON number, boolean, object or array, otherwise a text.
  ///
  /// The gateway converts it to the property's type.
  static func json(_ text: String) -> JSONValue {
    guard let value = try? JSONParser.parse(text) else { return .string(text) }
    return switch value {
    case .integer, .number, .boolean, .array, .object: value
    case .null, .string: .string(text)
    }
  }

  /// A value for a table: texts without quotes, colors as `#rrggbb`, `-` for none.
  static func text(_ value: JSONValue?) -> String {
    switch value {
    case nil, .null: "-"
    case .some(let value): shown(value)
    }
  }

  /// A value for people: a number of this type as they read it, with its unit.
  static func text(_ value: JSONValue?, of kind: ValueKind?) -> String {
    guard let number = value?.double, let rule = kind?.numberRule else { return text(value) }
    let (shown, unit) = rule.shown(number)
    return NumberText.shortest(shown) + (unit.map { " \($0)" } ?? "")
  }

  /// A value without quotes; of all values only colors are objects.
  static func shown(_ value: JSONValue) -> String {
    switch value {
    case .string(let text): return text
    case .object:
      guard case .color(let color)? = try? ValueKind.color.value(from: value) else { break }
      return color.hexText
    case .null, .boolean, .integer, .number, .array: break
    }
    return JSONWriter.text(value)
  }

  /// A duration in short form: `0.3s`, `12s`, `5m`, `3h`, `2d`.
  static func age(_ milliseconds: Int?) -> String {
    milliseconds.map(AgeText.text) ?? "-"
  }
}
