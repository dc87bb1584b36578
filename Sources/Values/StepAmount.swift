// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// How far a step goes: by a number, or by a percentage of the property's range.
package enum StepAmount: Hashable, Sendable {
  case number(Double)
  case percent(Double)

  /// Reads `10%`, `+10%` or `-10%`; `nil` for anything else.
  package init?(percentage text: String) {
    guard let percentage = Percentage(text) else { return nil }
    self = .percent(percentage.number)
  }

  /// A number, or a text such as `"-10%"`.
  package var json: JSONValue {
    switch self {
    case .number(let number): .number(number)
    case .percent(let number):
      .string("\(number < 0 ? "" : "+")\(NumberText.shortest(number))%")
    }
  }

  /// The number to add to a property of this type.
  ///
  /// A percentage of a type that is no number is returned as it is: the step itself is refused.
  ///
  /// - Throws: ``ValidationError`` for a percentage where there is no range.
  package func number(for kind: ValueKind) throws(ValidationError) -> Double {
    switch (self, kind) {
    case (.number(let number), _): number
    case (.percent(let percent), .number(let rule)):
      try rule.amount(ofPercent: percent, wholeOnly: false)
    case (.percent(let percent), .integer(let rule)):
      try rule.amount(ofPercent: percent, wholeOnly: true)
    case (.percent(let percent), .boolean), (.percent(let percent), .choice),
      (.percent(let percent), .text), (.percent(let percent), .color),
      (.percent(let percent), .action):
      percent
    }
  }
}

extension StepAmount: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral {
  package init(floatLiteral value: Double) { self = .number(value) }
  package init(integerLiteral value: Int) { self = .number(Double(value)) }
}
