// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

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
  /// The value as JSON, as in events and state topics.
  ///
  /// Whole numbers have no fraction.
  package var json: JSONValue {
    switch self {
    case .number(let number): JSONValue(shortest: number)
    case .boolean(let flag): .boolean(flag)
    case .text(let text): .string(text)
    case .color(let color): color.json
    }
  }

  /// The value as a bare payload: `40`, `true`, `heat`, `#ff8800`.
  ///
  /// A color in coordinates or hue and saturation is its JSON object.
  package var bareText: String {
    var output: [UInt8] = []
    appendBare(to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  /// Appends the bytes of ``bareText``.
  package func appendBare(to output: inout [UInt8]) { json.appendBare(to: &output) }
}

extension JSONValue {
  /// A number, as an integer when it is whole and exactly representable.
  package init(shortest number: Double) {
    self =
      number == number.rounded(.towardZero) && number.magnitude <= 0x1p53
      ? .integer(Int64(number)) : .number(number)
  }

  /// Appends a string without quotes, as in bare payloads, and anything else as JSON.
  package func appendBare(to output: inout [UInt8]) {
    if case .string(let text) = self {
      output.append(contentsOf: text.utf8)
    } else {
      JSONWriter.append(self, to: &output)
    }
  }

  /// The text of a scalar, without quotes; `nil` for `null`, arrays and objects.
  package var scalarText: String? {
    switch self {
    case .string(let text): text
    case .boolean, .integer, .number: JSONWriter.text(self)
    case .null, .array, .object: nil
    }
  }

  /// Whether two scalars mean the same to a device.
  ///
  /// `1`, `1.0` and `"1"` do, and so do `"ON"` and `"on"`.
  package func isSameScalar(as other: JSONValue) -> Bool {
    if self == other { return true }
    if let left = double, let right = other.double { return left == right }
    guard let left = scalarText, let right = other.scalarText else { return false }
    return left == right || left.lowercased() == right.lowercased()
  }
}
