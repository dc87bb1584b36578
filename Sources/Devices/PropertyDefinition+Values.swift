// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// Conversions that run for every message, with a fast path for unscaled numbers.
extension PropertyDefinition {
  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    if let number = grid?.value(of: bytes) { return .number(number) }
    if property.isReadOnly { try property.checkHasCommands() }
    return try property.kind.value(fromPayload: bytes)
  }

  /// The value as the device expects it; see ``Property/wireValue(of:)``.
  package func wireValue(of value: Value) -> JSONValue {
    if case .number(let number) = value, property.wire.scale == nil {
      return JSONValue(shortest: number)
    }
    return property.wireValue(of: value)
  }
}
