// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

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
}

/// The range and grid of a number.
package struct NumberRule: Hashable, Sendable {
  /// `nil`: any finite number.
  package var range: ClosedRange<Double>?
  package var step: Double?
  package var unit: String?
  package init(range: ClosedRange<Double>? = nil, step: Double? = nil, unit: String? = nil) {
    self.range = range
    self.step = step
    self.unit = unit
  }
}

/// How a command reaches the device.
package struct CommandRoad: Hashable, Sendable {
  package var topic: String
  package var payload: PayloadTemplate
  /// 0, 1 or 2.
  package var qos: Int
  package init(topic: String, payload: PayloadTemplate, qos: Int = 1) {
    self.topic = topic
    self.payload = payload
    self.qos = qos
  }
}

/// Where a device reports a property.
package struct StateSource: Hashable, Sendable {
  package var topic: String
  package var value: JSONPointer
  /// What to publish once when connected, to be told the state.
  package var get: StateRequest?
  package init(topic: String, value: JSONPointer, get: StateRequest? = nil) {
    self.topic = topic
    self.value = value
    self.get = get
  }
}

package struct StateRequest: Hashable, Sendable {
  package var topic: String
  package var payload: [UInt8]
  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    self.payload = payload
  }
}

/// When a sent command counts as confirmed.
package struct Confirmation: Hashable, Sendable {
  package var within: Duration
  /// In wire units; `nil`: half a step.
  package var tolerance: Double?
  /// Attempts after the first.
  package var retries: Int
  package init(within: Duration = .seconds(5), tolerance: Double? = nil, retries: Int = 0) {
    self.within = within
    self.tolerance = tolerance
    self.retries = retries
  }
}

/// One controllable value of a device, with everything inherited already filled in.
package struct Property: Hashable, Sendable {
  package var id: String
  package var aliases: [String] = []
  package var kind: ValueKind
  package var policy: Policy
  package var command: CommandRoad
  package var state: StateSource?
  /// `nil`: `sent` is the end.
  package var confirm: Confirmation?
  package var ttl: Duration
  /// Values that leave at once.
  package var urgent: [Value] = []
  /// Properties of the same device whose commands an urgent value ends.
  package var ends: [String] = []
  /// Properties of the same device that this one replaces, the newer winning.
  package var excludes: [String] = []
  /// Send even if the device already has the value.
  package var always = false
  /// How values become wire values and back.
  package var wire = WireRule()

  package init(
    id: String, kind: ValueKind, policy: Policy, command: CommandRoad, ttl: Duration = .seconds(60)
  ) {
    self.id = id
    self.kind = kind
    self.policy = policy
    self.command = command
    self.ttl = ttl
  }
}

extension Property {
  /// Reads a value as a person or program gave it (a JSON value, or a bare word as a string).
  package func value(from input: JSONValue) throws(ValidationError) -> Value { fatalError("skeleton") }
  /// Reads a bare payload or argument: `40`, `on`, `heat`, `#ff8800`, or JSON text already parsed.
  package func value(fromText text: String) throws(ValidationError) -> Value { fatalError("skeleton") }
  /// The sum of `base` and `amount`, clamped to the range and snapped.
  package func stepped(from base: Value, by amount: Double) throws(ValidationError) -> Value { fatalError("skeleton") }
  /// The other value of a boolean.
  package func toggled(from base: Value) throws(ValidationError) -> Value { fatalError("skeleton") }
  /// What leaves for the device: scaled, rounded, mapped, encoded.
  package func wireValue(of value: Value) -> JSONValue { fatalError("skeleton") }
  /// What a report at ``StateSource/value`` means; `nil` when it is no value of this property.
  package func value(fromWire wire: JSONValue) -> Value? { fatalError("skeleton") }
  /// Whether a reported wire value shows `value`, within the tolerance.
  package func isShown(_ value: Value, by reported: JSONValue) -> Bool { fatalError("skeleton") }
  /// Whether two values leave as the same wire value.
  package func isSameOnWire(_ left: Value, _ right: Value) -> Bool { fatalError("skeleton") }
}
