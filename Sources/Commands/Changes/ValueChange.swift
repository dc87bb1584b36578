// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import Values

/// What a requester asks of one key.
package enum ValueChange: Hashable, Sendable {
  /// A valid value of the property.
  case set(Value)
  /// An amount to add to what the key is, or will be once its commands are done.
  case step(Double)
  /// The opposite of what the key is, or will be once its commands are done.
  case toggle

  /// The absolute value, counted from `base`; `nil` when that is needed and unknown.
  ///
  /// - Throws: When the property has no such change, or its rule does not allow the value.
  func value(
    from base: Value?,
    of property: borrowing Property
  ) throws(ValidationError) -> Value? {
    switch self {
    case .set(let value): return value
    case .step(let amount):
      guard let base else { return nil }
      return try property.stepped(from: base, by: amount)
    case .toggle:
      guard let base else { return nil }
      return try property.toggled(from: base)
    }
  }

  /// Checks that the property can be stepped or toggled at all.
  ///
  /// - Throws: When the property has no such change.
  func check(_ property: borrowing Property) throws(ValidationError) {
    switch self {
    case .set: break
    case .step(let amount): _ = try property.stepped(from: .number(0), by: amount)
    case .toggle: _ = try property.toggled(from: .boolean(false))
    }
  }
}
