// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// Conversions that run for every message, with a fast path for unscaled numbers.
extension Registry.Entry {
  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    if let number = grid?.value(of: bytes) { return .number(number) }
    return try property.kind.value(fromPayload: bytes)
  }

  /// The value as the device expects it; see ``Property/wireValue(of:)``.
  package func wireValue(of value: Value) -> JSONValue {
    if case .number(let number) = value, property.wire.scale == nil {
      return JSONValue(shortest: number)
    }
    return property.wireValue(of: value)
  }

  /// Appends the payload of a command for this property alone, in the message numbered `id`.
  package func appendCommand(_ value: Value, id: Int64, to output: inout [UInt8]) {
    if property.command.payload.isBare {
      wireValue(of: value).appendBare(to: &output)
    } else {
      property.command.payload.render(wireValue(of: value), id: id, into: &output)
    }
  }
}
