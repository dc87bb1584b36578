// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// One value of a device, with all inherited settings resolved.
package struct Property: Hashable, Sendable {
  package var id: String
  package var aliases: [String] = []
  /// The display name, if one is given.
  package var name: String?
  package var kind: ValueKind
  package var policy: Policy
  package var command: CommandEndpoint
  /// Whether only the device changes it; ``command`` means nothing then.
  package private(set) var isReadOnly = false
  /// Where the device reports the property.
  ///
  /// A report at any of them counts; most have one.
  package var states: [StateSource] = []
  /// How commands are confirmed; `nil` when `sent` is their last phase.
  package var confirm: Confirmation?
  /// How long a value may wait for an offline broker or device.
  package var ttl: Duration
  /// Values that are sent immediately.
  package var urgent: [Value] = []
  /// Properties of the same device whose commands an urgent value ends.
  package var ends: [String] = []
  /// Properties of the same device that cannot be pending together with this one; the newer wins.
  package var excludes: [String] = []
  /// The values that other properties of the same device take when a value of this one is sent.
  package var implies: [Implication] = []
  /// Whether to send a value that the device already has.
  package var always = false
  /// How a person's change keeps other sources away; `nil` where it does not.
  package var hold: HoldRule?
  /// How values convert to wire values and back.
  package var wire = WireRule()

  package init(
    id: String,
    kind: ValueKind,
    policy: Policy,
    command: CommandEndpoint,
    ttl: Duration = .seconds(60)
  ) {
    self.id = id
    self.kind = kind
    self.policy = policy
    self.command = command
    self.ttl = ttl
  }

  /// A property that only the device changes.
  package init(readOnly id: String, kind: ValueKind) {
    self.init(id: id, kind: kind, policy: Policy(delay: .zero), command: .none)
    isReadOnly = true
  }

  /// The first topic on which the device reports the property of its own accord; `nil` without one.
  package var reportSource: StateSource? {
    states.first { !$0.acknowledges && $0.reply == nil }
  }

  /// Checks that the property has commands.
  ///
  /// - Throws: ``ValidationError`` when only the device changes it.
  func checkHasCommands() throws(ValidationError) {
    guard isReadOnly else { return }
    throw .unsupported("'\(id)' is read-only: only the device changes it")
  }

  /// Whether it stands for momentary commands, which are not collapsed, rather than a value.
  package var isAction: Bool { if case .action = kind { true } else { false } }

  /// Whether there are values between two of its values, through which a device may move.
  package var hasWay: Bool {
    switch kind {
    case .number, .integer, .color: true
    case .boolean, .choice, .text, .action: false
    }
  }

  /// The first of ``states``; setting it replaces them all.
  package var state: StateSource? {
    get { states.first }
    set { states = newValue.map { [$0] } ?? [] }
  }
}

/// Where and how a property's commands are published.
package struct CommandEndpoint: Hashable, Sendable {
  package var topic: String
  package var payload: PayloadTemplate
  /// The MQTT quality of service: 0, 1 or 2.
  package var qos: Int

  /// That of a property without a topic of its own.
  static let none = CommandEndpoint(topic: "", payload: PayloadTemplate("$value"))

  package init(topic: String, payload: PayloadTemplate, qos: Int = 1) {
    self.topic = topic
    self.payload = payload
    self.qos = qos
  }
}

/// A value that another property of the same device takes.
package struct Implication: Hashable, Sendable {
  /// The identifier of the other property, which is no action.
  package var property: String
  package var value: Value

  package init(property: String, value: Value) {
    self.property = property
    self.value = value
  }
}

/// When a sent command counts as confirmed.
package struct Confirmation: Hashable, Sendable {
  /// How long to wait for the report before a retry or the phase `failed`.
  package var within: Duration
  /// The accepted difference in wire units; `nil` means half a step.
  package var tolerance: Double?
  /// The number of attempts after the first.
  package var retries: Int

  package init(within: Duration = .seconds(5), tolerance: Double? = nil, retries: Int = 0) {
    self.within = within
    self.tolerance = tolerance
    self.retries = retries
  }
}

/// How a property's values convert to wire values and back.
package struct WireRule: Hashable, Sendable {
  /// The wire value of `true`; `nil` for the JSON boolean.
  package var on: JSONValue?
  /// The wire value of `false`; `nil` for the JSON boolean.
  package var off: JSONValue?
  /// What the device reports for `true`, where it is not ``on``.
  package var reportedOn: JSONValue?
  /// What the device reports for `false`, where it is not ``off``.
  package var reportedOff: JSONValue?
  /// The conversion of numbers; `nil` for none.
  package var scale: Scale?
  /// The form of colors in commands.
  package var encoding = ColorEncoding.hex
  /// The form of colors in reports; `nil` for that of commands.
  package var decoding: ColorEncoding?
  /// The wire values of words that differ from the word itself.
  package var words: [String: JSONValue] = [:]
  /// What the device reports for a word, where that is neither the word nor its wire value.
  package var reportedWords: [String: [JSONValue]] = [:]

  package init() {}

  /// The form of colors in reports.
  package var reportedEncoding: ColorEncoding { decoding ?? encoding }
}
