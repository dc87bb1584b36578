// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// A property of a ``DeviceDefinition``: one of a device, or of every device of a template.
package final class PropertyDefinition: Sendable {
  /// The property; of a template, its name, command and state topics may have marks.
  ///
  /// Everything else is equal for all devices of the template.
  package let property: Property
  /// Whether the devices of a template have commands or states of their own.
  let variesCommand: Bool
  let variesStates: Bool
  let variesName: Bool
  /// Which of its states have topics of their own that name the device; see ``MarkedTopic``.
  package let matchedStates: [Bool]
  /// A fast reader for whole numbers; `nil` where it does not apply.
  let grid: WholeGrid?
  /// `device/property`; `nil` in a template.
  let key: String?

  /// A property of a device of its own.
  init(_ property: Property, device: String) {
    self.property = property
    key = "\(device)/\(property.id)"
    (variesCommand, variesStates, variesName) = (false, false, false)
    matchedStates = []
    grid = Self.grid(of: property)
  }

  /// A property of a template, of which one device has `filled`.
  ///
  /// Returns `nil` where devices differ in more than name, command and states.
  init?(_ property: Property, filledAs filled: Property, marks: [Int]) {
    variesCommand = property.command != filled.command
    variesStates = property.states != filled.states
    variesName = property.name != filled.name
    var rest = filled
    rest.command = property.command
    rest.states = property.states
    rest.name = property.name
    guard rest == property else { return nil }
    self.property = property
    key = nil
    matchedStates = property.states.map { MarkedTopic($0.topic, marks: marks) != nil }
    grid = Self.grid(of: property)
  }

  /// `nil` for a read-only property too: reading a value of it then says so.
  private static func grid(of property: Property) -> WholeGrid? {
    property.isReadOnly ? nil : property.kind.numberRule.flatMap { WholeGrid($0) }
  }

  /// Whether each device of the template has a property of its own.
  var varies: Bool { variesCommand || variesStates || variesName }
}

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

/// A fast reader for whole numbers that are in a property's range and on its step.
///
/// Most payloads are such numbers; reading their digits suffices.
struct WholeGrid: Sendable {
  /// A `Double` holds this many digits exactly; ``NumberText`` reads longer numbers.
  private static let mostDigits = 15

  private let lowest: Int64
  private let highest: Int64
  private let origin: Int64
  private let step: Int64

  /// `nil` unless the range starts at a whole number and the step is whole or a fraction like 1/10.
  init?(_ rule: NumberRule) {
    let most = 1e15
    let origin = rule.range?.lowerBound ?? 0
    guard let begin = Int64(exactly: origin), origin.magnitude <= most else { return nil }
    self.origin = begin
    lowest = rule.range == nil ? Int64(-most) : begin
    highest = Int64(min(rule.range?.upperBound ?? most, most).rounded(.down))
    guard let step = rule.step, step > 0 else {
      self.step = 1
      return
    }
    if let whole = Int64(exactly: step) {
      self.step = whole
    } else {
      // Steps such as 0.5, 0.2 and 0.1 reach every whole number.
      let parts = (1 / step).rounded()
      guard parts <= 1000, (parts * step - 1).magnitude < 1e-12 else { return nil }
      self.step = 1
    }
  }

  /// Reads plain digits; `nil` for anything that the general reader must handle.
  func value(of bytes: Span<UInt8>) -> Double? {
    guard !bytes.isEmpty else { return nil }
    let isNegative = bytes[0] == UInt8(ascii: "-")
    let first = isNegative ? 1 : 0
    guard bytes.count > first, bytes.count - first <= Self.mostDigits else { return nil }
    var number: Int64 = 0
    for index in first..<bytes.count {
      let digit = bytes[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      number = number &* 10 &+ Int64(digit)
    }
    if isNegative { number = -number }
    guard number >= lowest, number <= highest else { return nil }
    guard step == 1 || (number - origin) % step == 0 else { return nil }
    return Double(number)
  }
}
