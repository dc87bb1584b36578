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
    guard case .object(let more)? = details?.json else { return .object(members) }
    return .object(members + more)
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
    urgent = json["urgent"]?.elements ?? []
    ends = json["ends"]?.texts ?? []
    isHeard = json["heard"] != false
    unreadable = json["unreadable"].flatMap(UnreadableRow.init)
    details = PropertyDetails(json)
  }

  private static func kind(_ json: JSONValue) -> ValueKind? {
    let words = json["values"]?.texts ?? []
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
    let ends = (json["range"]?.elements ?? []).compactMap(\.double)
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
}

/// The reports of a property that could not be read.
package struct UnreadableRow: ListedObject, Hashable, Sendable {
  package var count: UInt64 = 0
  /// The newest, shortened.
  package var last = ""

  package init() {}

  package init(count: UInt64, last: String) {
    self.count = count
    self.last = last
  }

  package mutating func list(_ members: inout MemberList) {
    members.count("count", &count, isNeeded: true)
    members.text("last", &last)
  }
}

/// What `describe` of a single key says beside its ``PropertyRow``: topics, and the message that
/// would be sent.
package struct PropertyDetails: ListedObject, Hashable, Sendable {
  /// A topic on which the device reports the property.
  package struct Source: ListedObject, Hashable, Sendable {
    package var topic = ""
    /// Where the value is in the payload, as a JSON Pointer.
    package var pointer = ""
    /// Whether it only acknowledges commands.
    package var acknowledges = false

    package init() {}

    package init(topic: String, pointer: String, acknowledges: Bool) {
      self.topic = topic
      self.pointer = pointer
      self.acknowledges = acknowledges
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("topic", &topic, isNeeded: true)
      members.text("value", &pointer)
      members.flag("acknowledges", &acknowledges)
    }
  }

  /// `nil` where the device has none.
  package var lane: String?
  /// How long a value may wait for an offline broker or device.
  package var ttlMilliseconds = 0
  /// The keys that a group's key stands for; empty for any other.
  package var members: [String] = []
  /// Where commands go.
  package var out = Target()
  package var states: [Source] = []
  /// Topics that say whether the device is online.
  package var availability: [String] = []
  /// The topic on which a device that sleeps reports itself.
  package var awake: String?
  package var retries = 0
  /// How many times as long each attempt waits for its confirmation as the one before.
  package var backoff = 1.0
  /// Keys that cannot be pending together with this one.
  package var excludes: [String] = []
  /// The values that other keys take when a value of this one is sent, by key.
  package var implies: [JSONValue.Member] = []
  /// How long a person's change keeps other sources away; `nil` where it does not.
  package var holdMilliseconds: Int?
  /// The sources of changes that count as a person's, where there is a hold.
  package var hands: [String] = []
  /// Who holds the property now; `nil` when nobody does.
  package var heldBy: String?
  /// How much longer.
  package var heldMilliseconds: Int?
  /// Why nothing can be sent at the moment; `nil` if it can.
  package var obstacle: String?
  /// The message for the value that the key shows, or for one that it may have.
  package var message: MessagePreview?

  package init() {}

  /// Where commands go.
  package struct Target: ListedObject, Hashable, Sendable {
    package var topic = ""
    package var qos = 0

    package init() {}

    package mutating func list(_ members: inout MemberList) {
      members.text("topic", &topic, isNeeded: true)
      members.count("qos", &qos)
    }
  }

  package mutating func list(_ members: inout MemberList) {
    members.text("lane", &lane)
    members.count("ttl_ms", &ttlMilliseconds)
    members.member("out", &out, isNeeded: true, read: Target.init) { $0.json }
    members.objects("in", &states)
    members.texts("availability", &availability)
    members.text("awake", &awake)
    members.count("retries", &retries)
    members.member("backoff", &backoff, read: \.double) { JSONValue(shortest: $0) }
    members.texts("excludes", &excludes)
    members.member("implies", &implies, read: \.members) { .object($0) }
    members.count("hold_ms", &holdMilliseconds)
    members.texts("hands", &hands)
    members.text("held_by", &heldBy)
    members.count("held_ms", &heldMilliseconds)
    members.text("obstacle", &obstacle)
    members.texts("members", &self.members)
    members.object("message", &message)
  }
}
