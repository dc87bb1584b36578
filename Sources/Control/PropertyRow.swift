// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// One line of `describe`: the type and the policy of a key, constant until devices are reloaded,
/// and how its reports fare.
package struct PropertyRow: Hashable, Sendable {
  /// When the property settles.
  package struct Policy: Hashable, Sendable {
    package var delay: Duration
    /// `nil` for no limit.
    package var maxWait: Duration?
    /// Whether the first change of a burst is sent at once.
    package var leading: Bool
    package var minInterval: Duration

    package init(
      delay: Duration,
      maxWait: Duration? = nil,
      leading: Bool = false,
      minInterval: Duration = .zero
    ) {
      self.delay = delay
      self.maxWait = maxWait
      self.leading = leading
      self.minInterval = minInterval
    }
  }

  package var key: String
  /// The display name of the device.
  package var deviceName: String
  /// The display name of the property, if it has one.
  package var name: String?
  /// The type, with range, step, unit and words.
  package var kind: ValueKind
  package var policy: Policy
  /// Whether only the device changes it.
  package var isReadOnly = false
  /// How long the device may take to confirm; `nil` where nothing can confirm.
  package var confirmWithin: Duration?
  /// Values that are sent immediately.
  package var urgent: [JSONValue] = []
  /// Keys whose commands an urgent value ends.
  package var ends: [String] = []
  /// Whether the property was ever reported, or has no state topic.
  package var isHeard = true
  /// The reports that could not be read; `nil` without any.
  package var unreadable: UnreadableRow?
  /// Topics and the message; only in the reply about a single key.
  package var details: PropertyDetails?

  package init(key: String, deviceName: String, kind: ValueKind, policy: Policy) {
    self.key = key
    self.deviceName = deviceName
    self.kind = kind
    self.policy = policy
  }
}

// MARK: - Writing

extension PropertyRow {
  package var json: JSONValue {
    var members: [JSONValue.Member] = []
    func add(_ name: String, _ value: JSONValue?) { members.append(.init(name, value ?? .null)) }
    let rule = kind.numberRule
    add("key", .string(key))
    add("device", .string(deviceName))
    add("name", name.map(JSONValue.string))
    add("type", .string(kind.name))
    add("range", rule?.range.map { .array([number($0.lowerBound), number($0.upperBound)]) })
    add("step", rule?.step.map(number))
    add("unit", rule?.unit.map(JSONValue.string))
    add("display", rule?.display?.json)
    add("values", words.map { .array($0.map(JSONValue.string)) })
    add("read_only", .boolean(isReadOnly))
    add("policy", policyJSON)
    add("confirm_ms", confirmWithin.map(milliseconds))
    add("urgent", .array(urgent))
    add("ends", .array(ends.map(JSONValue.string)))
    if !isHeard { add("heard", false) }
    if let unreadable { add("unreadable", unreadable.json) }
    return .object(members + (details?.jsonMembers ?? []))
  }

  private var policyJSON: JSONValue {
    .object([
      "delay_ms": milliseconds(policy.delay),
      "max_wait_ms": policy.maxWait.map(milliseconds) ?? .null,
      "leading": .boolean(policy.leading),
      "min_interval_ms": milliseconds(policy.minInterval),
    ])
  }

  /// The allowed words, if the type has any.
  package var words: [String]? {
    switch kind {
    case .choice(let words), .action(let words): words
    case .number, .integer, .boolean, .text, .color: nil
    }
  }

  private func number(_ number: Double) -> JSONValue { JSONValue(shortest: number) }

  private func milliseconds(_ duration: Duration) -> JSONValue {
    JSONValue(shortest: (duration / .nanoseconds(1)).rounded() / 1e6)
  }
}

// MARK: - Reading

extension PropertyRow {
  /// Reads a row; `nil` when a member is missing or of the wrong type.
  package init?(_ json: JSONValue) {
    guard let key = json["key"]?.string, let device = json["device"]?.string,
      let kind = Self.kind(json), let policy = json["policy"].flatMap(Self.policy)
    else { return nil }
    self.init(key: key, deviceName: device, kind: kind, policy: policy)
    name = json["name"]?.string
    isReadOnly = json["read_only"] == true
    confirmWithin = Self.duration(json["confirm_ms"])
    urgent = Self.elements(json["urgent"])
    ends = Self.elements(json["ends"]).compactMap(\.string)
    isHeard = json["heard"] != false
    unreadable = json["unreadable"].flatMap(UnreadableRow.init)
    details = PropertyDetails(json)
  }

  private static func kind(_ json: JSONValue) -> ValueKind? {
    let words = elements(json["values"]).compactMap(\.string)
    return switch json["type"]?.string {
    case "number": .number(rule(json))
    case "integer": .integer(rule(json))
    case "boolean": .boolean
    case "choice": .choice(words)
    case "text": .text
    case "color": .color
    case "action": .action(words)
    default: nil
    }
  }

  private static func rule(_ json: JSONValue) -> NumberRule {
    let ends = elements(json["range"]).compactMap(\.double)
    let isRange = ends.count == 2 && ends[0] <= ends[1]
    var rule = NumberRule(
      range: isRange ? ends[0]...ends[1] : nil,
      step: json["step"]?.double,
      unit: json["unit"]?.string
    )
    rule.display = Display(json["display"])
    return rule
  }

  private static func policy(_ json: JSONValue) -> Policy? {
    guard let delay = duration(json["delay_ms"]) else { return nil }
    return Policy(
      delay: delay,
      maxWait: duration(json["max_wait_ms"]),
      leading: json["leading"] == true,
      minInterval: duration(json["min_interval_ms"]) ?? .zero
    )
  }

  private static func duration(_ json: JSONValue?) -> Duration? {
    guard let milliseconds = json?.double, (0...1e12).contains(milliseconds) else { return nil }
    return .nanoseconds(Int64((milliseconds * 1e6).rounded()))
  }

  private static func elements(_ json: JSONValue?) -> [JSONValue] {
    if case .array(let elements) = json { elements } else { [] }
  }
}
