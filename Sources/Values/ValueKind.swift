// Settle
// SPDX-License-Identifier: Apache-2.0

/// The type of a property, with its limits.
package enum ValueKind: Hashable, Sendable {
  case number(NumberRule)
  case integer(NumberRule)
  case boolean
  case choice([String])
  case text
  case color
  /// A momentary command such as STOP, with the words it accepts; an empty list accepts any word.
  case action([String])

  /// The name of the type in device files.
  package var name: String {
    switch self {
    case .number: "number"
    case .integer: "integer"
    case .boolean: "boolean"
    case .choice: "choice"
    case .text: "text"
    case .color: "color"
    case .action: "action"
    }
  }

  /// The range and step of a numeric type.
  package var numberRule: NumberRule? {
    switch self {
    case .number(let rule), .integer(let rule): rule
    case .boolean, .choice, .text, .color, .action: nil
    }
  }
}
