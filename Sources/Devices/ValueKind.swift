// Settle
// SPDX-License-Identifier: Apache-2.0

/// What values a property takes.
package enum ValueKind: Hashable, Sendable {
  case number(NumberRule)
  case integer(NumberRule)
  case boolean
  case choice([String])
  case text
  case color
  /// A momentary command such as STOP: the words it takes; empty takes any.
  case action([String])

  /// The word that `type:` has for it.
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

  /// The range and grid, where there is one.
  package var numberRule: NumberRule? {
    switch self {
    case .number(let rule), .integer(let rule): rule
    case .boolean, .choice, .text, .color, .action: nil
    }
  }
}
