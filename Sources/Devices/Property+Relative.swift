// Settle
// SPDX-License-Identifier: Apache-2.0

package import Values

extension Property {
  /// The sum of `base` and `amount`, clamped to the range and snapped to the step.
  ///
  /// - Throws: ``ValidationError`` when the property is not numeric, or `amount` does not fit it.
  package func stepped(from base: Value, by amount: Double) throws(ValidationError) -> Value {
    try checkHasCommands()
    let rule: NumberRule
    switch kind {
    case .number(let own): rule = own
    case .integer(let own):
      guard amount == amount.rounded() else {
        throw .wrongType(
          found: NumberText.shortest(amount),
          expected: "a whole number",
          suggestion: nil
        )
      }
      rule = own
    case .boolean, .choice, .text, .color, .action:
      throw .unsupported("step needs a number; '\(id)' is of type \(kind.name)")
    }
    guard amount.isFinite else {
      throw .wrongType(found: amount.description, expected: "a finite number", suggestion: nil)
    }
    guard case .number(let start) = base else {
      preconditionFailure("The base of a step is a number.")
    }
    return .number(rule.snapped(rule.clamped(start + amount)))
  }

  /// The opposite of `base`.
  ///
  /// - Throws: ``ValidationError`` when the property is not a boolean.
  package func toggled(from base: Value) throws(ValidationError) -> Value {
    try checkHasCommands()
    guard case .boolean = kind else {
      throw .unsupported("toggle needs a boolean; '\(id)' is of type \(kind.name)")
    }
    guard case .boolean(let flag) = base else {
      preconditionFailure("The base of a toggle is a boolean.")
    }
    return .boolean(!flag)
  }
}
