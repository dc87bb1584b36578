// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value of a property, in the user's units.
package enum Value: Hashable, Sendable {
  /// `number` and `integer` properties.
  case number(Double)
  case boolean(Bool)
  /// `choice`, `text` and `action` properties.
  case text(String)
  case color(Color)
}

extension Value {
  /// The value as JSON, as events and state topics show it.
  package var json: JSONValue { fatalError("skeleton") }
  /// The value as a bare payload: `40`, `true`, `heat`, `#ff8800`.
  package var bareText: String { fatalError("skeleton") }
}
