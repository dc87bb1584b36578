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
  /// What it is for, in the words of ``DeviceClass``; `nil` if nothing says so.
  package var deviceClass: String?
  /// Whether it sets up its device or is about the device itself, where something says so.
  package var category: PropertyCategory?
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
  /// Whether a device that returns after it lost its power gets the value back.
  package var restore = false
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

  /// Whether it switches its device.
  package var isPower: Bool { id == "power" && kind == .boolean }

  /// Whether its reports keep what they look like, such as `12.30`, or `10` in hexadecimal digits.
  package var readsText: Bool {
    kind.isText || wire.reportedFormat != nil || wire.format != nil
  }

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

/// What a property is beside what its device is for, in Home Assistant's words.
package enum PropertyCategory: String, Hashable, Sendable, CaseIterable {
  case config, diagnostic
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
  /// How long the first attempt waits for the report before a retry or the phase `failed`.
  package var within: Duration
  /// The accepted difference in wire units; `nil` means half a step.
  package var tolerance: Double?
  /// The number of attempts after the first.
  package var retries: Int
  /// How many times as long each attempt waits as the one before, 1 to 10.
  package var backoff: Double

  /// The longest that an attempt waits because of ``backoff``.
  static let longest = Duration.seconds(3600)

  package init(
    within: Duration = .seconds(5),
    tolerance: Double? = nil,
    retries: Int = 0,
    backoff: Double = 1
  ) {
    self.within = within
    self.tolerance = tolerance
    self.retries = retries
    self.backoff = backoff
  }

  /// How long an attempt waits for the report, if `retries` were made before it.
  package func patience(afterRetries retries: Int) -> Duration {
    guard backoff > 1, retries > 0, within < Self.longest else { return within }
    var patience = within
    for _ in 0..<retries where patience < Self.longest { patience = patience * backoff }
    return min(patience, Self.longest)
  }
}

/// How a property's values convert to wire values and back.
package struct WireRule: Hashable, Sendable {
  /// The wire value of `true`; `nil` for the JSON boolean.
  package var on: JSONValue?
  /// The wire value of `false`; `nil` for the JSON boolean.
  package var off: JSONValue?
  /// What the device reports for `true`, where it is not ``on``; an array lists alternatives,
  /// null is any report that nothing else has, and an object the bound of a number.
  package var reportedOn: JSONValue?
  /// What the device reports for `false`, where it is not ``off``; as ``reportedOn``.
  package var reportedOff: JSONValue?
  /// The conversion of numbers; `nil` for none.
  package var scale: Scale?
  /// The text that a number is in, in commands; `nil` for the number alone.
  package var format: NumberFormat?
  /// The text that a number is in, in reports; `nil` for that of commands.
  package var reportedFormat: NumberFormat?
  /// The form of colors in commands.
  package var encoding = ColorEncoding.hex
  /// The form of colors in reports; `nil` for that of commands.
  package var decoding: ColorEncoding?
  /// The wire values of words, and of numbers in their shortest form, that differ from these.
  package var words: [String: JSONValue] = [:]
  /// What the device reports for a word, where that is neither the word nor its wire value; null
  /// alone is any report that no other word has, and an object the bound of a number.
  ///
  /// For numbers it is what is reported in place of them, and for ``none``, where there is none.
  package var reportedWords: [String: [JSONValue]] = [:]
  /// The word for reports that the device does not know a number.
  package static let none = "none"

  package init() {}

  /// Whether a number's wire value is the number itself.
  var isPlainNumber: Bool { scale == nil && format == nil && words.isEmpty }

  /// The form of colors in reports.
  package var reportedEncoding: ColorEncoding { decoding ?? encoding }
}

extension Property {
  /// Reads a value that a user gave: a JSON value, or a bare word as a string.
  ///
  /// Numbers are snapped to the step and never clamped. A text such as `50%` is that part of the
  /// range, and one such as `red` that color.
  ///
  /// - Throws: ``ValidationError`` when the input is not a value of this property.
  package func value(from input: JSONValue) throws(ValidationError) -> Value {
    try checkHasCommands()
    return try kind.value(from: input)
  }

  /// Reads a bare payload from bytes.
  ///
  /// Creates no `String` for numbers and booleans.
  ///
  /// A payload that starts with `{`, `[` or `"` is JSON: parse it and use ``value(from:)``.
  ///
  /// - Throws: ``ValidationError`` when the payload is not a value of this property.
  package func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    try checkHasCommands()
    return try kind.value(fromPayload: bytes)
  }
}

extension ValueKind {
  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    let word = bytes.extracting(Self.bounds(of: bytes))
    switch self {
    case .number(let rule):
      if let number = Self.number(word) { return try checked(number, rule, wholeOnly: false) }
    case .integer(let rule):
      if let number = Self.number(word) { return try checked(number, rule, wholeOnly: true) }
    case .boolean:
      if let flag = Self.flag(word: word) { return .boolean(flag) }
    case .choice(let words):
      for choice in words where Self.isSame(choice, word) { return .text(choice) }
    case .text: return .text(try Self.text(of: bytes))
    case .color, .action: break
    }
    return try value(from: .string(Self.text(of: bytes)))
  }

  /// A number without a plus sign, which would be a step.
  private static func number(_ word: Span<UInt8>) -> Double? {
    guard word.isEmpty || word[0] != UInt8(ascii: "+") else { return nil }
    return NumberText.parse(word)
  }

  /// The text of a payload, which must be UTF-8.
  private static func text(of bytes: Span<UInt8>) throws(ValidationError) -> String {
    var copy: [UInt8] = []
    copy.reserveCapacity(bytes.count)
    for index in bytes.indices { copy.append(bytes[index]) }
    guard let text = String(validating: copy, as: UTF8.self) else {
      throw .wrongType(
        found: "bytes that are not UTF-8",
        expected: "text in UTF-8",
        suggestion: nil
      )
    }
    return text
  }

  private static func isSame(_ word: String, _ bytes: Span<UInt8>) -> Bool {
    guard word.utf8.count == bytes.count else { return false }
    var index = 0
    for byte in word.utf8 {
      if byte != bytes[index] { return false }
      index += 1
    }
    return true
  }

  /// The range without leading and trailing spaces, tabs and line breaks.
  private static func bounds(of bytes: Span<UInt8>) -> Range<Int> {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    var start = 0
    var end = bytes.count
    while start < end, isSpace(bytes[start]) { start += 1 }
    while end > start, isSpace(bytes[end - 1]) { end -= 1 }
    return start..<end
  }
}

extension Property {
  /// The sum of `base` and `amount`, clamped to the range and snapped to the step.
  ///
  /// - Throws: ``ValidationError`` when the property is not numeric, or `amount` does not fit it.
  package func stepped(from base: Value, by amount: Double) throws(ValidationError) -> Value {
    try checkHasCommands()
    let rule: NumberRule
    switch kind {
    case .number(let own): rule = own
    case .integer(let own):
      guard amount == amount.rounded() else {
        throw .wrongType(
          found: NumberText.shortest(amount),
          expected: "a whole number",
          suggestion: nil
        )
      }
      rule = own
    case .boolean, .choice, .text, .color, .action:
      throw .unsupported("step needs a number; '\(id)' is of type \(kind.name)")
    }
    guard amount.isFinite else {
      throw .wrongType(found: amount.description, expected: "a finite number", suggestion: nil)
    }
    guard case .number(let start) = base else {
      preconditionFailure("The base of a step is a number.")
    }
    return .number(rule.snapped(rule.clamped(start + amount)))
  }

  /// The opposite of `base`.
  ///
  /// - Throws: ``ValidationError`` when the property is not a boolean.
  package func toggled(from base: Value) throws(ValidationError) -> Value {
    try checkHasCommands()
    guard case .boolean = kind else {
      throw .unsupported("toggle needs a boolean; '\(id)' is of type \(kind.name)")
    }
    guard case .boolean(let flag) = base else {
      preconditionFailure("The base of a toggle is a boolean.")
    }
    return .boolean(!flag)
  }
}

/// For how long a person's change of a property keeps every other source from changing it.
package struct HoldRule: Hashable, Sendable {
  /// The sources that count as a person where a property names none: the panel, `settle control`
  /// and the command line.
  package static let standardHands = ["panel", "control", "cli"]

  /// How long it holds, from a person's last change on.
  package var duration: Duration
  /// Sources of changes that count as a person's; each is a ``Pattern``.
  package var hands: [String]

  package init(duration: Duration, hands: [String] = Self.standardHands) {
    self.duration = duration
    self.hands = hands
  }

  /// Whether changes of this source count as a person's.
  package func isHand(_ source: String) -> Bool {
    hands.contains { $0 == source || Pattern($0).matches(source) }
  }
}

/// A topic on which a device reports a property.
package struct StateSource: Hashable, Sendable {
  package var topic: String
  /// Where the value is in the payload.
  package var value: JSONPointer
  /// A request for the state, published once after connecting.
  package var get: StateRequest?
  /// Whether the topic only acknowledges commands.
  ///
  /// An acknowledgement confirms a command but does not change the actual value.
  package var acknowledges: Bool
  /// Where replies identify the message that they answer, if the topic carries replies.
  package var reply: ReplySource?

  package init(
    topic: String,
    value: JSONPointer,
    get: StateRequest? = nil,
    acknowledges: Bool = false,
    reply: ReplySource? = nil
  ) {
    self.topic = topic
    self.value = value
    self.get = get
    self.acknowledges = acknowledges
    self.reply = reply
  }

  /// What a message on a state topic says of a property.
  package enum Reading {
    /// The value, as found on the wire.
    case value(JSONValue)
    /// Nothing: a device may report some of its properties in a message.
    case nothing
    /// The payload is a word or a number, and no JSON in which there could be a value.
    case unreadable
  }

  /// Finds the value in a message on the topic.
  package func reading(of document: JSONValue) -> Reading {
    if let wire = value.value(in: document) { return .value(wire) }
    return switch document {
    case .object, .array, .null: .nothing
    case .boolean, .integer, .number, .string: .unreadable
    }
  }
}

/// The parts of a device's reply: the number of the message it answers, and its error.
package struct ReplySource: Hashable, Sendable {
  package var id: JSONPointer
  /// Where a reply to a refused command has its error; only such a reply has a value there.
  package var error: JSONPointer?

  package init(id: JSONPointer, error: JSONPointer? = nil) {
    self.id = id
    self.error = error
  }
}

/// A message that requests the state of a device.
package struct StateRequest: Hashable, Sendable {
  private enum Content: Hashable {
    case bytes([UInt8])
    case object([JSONValue.Member])
  }

  package var topic: String
  private var content: Content

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    content = .bytes(payload)
  }

  /// A request whose payload is a JSON object, which can share a message with others.
  package init(topic: String, members: [JSONValue.Member]) {
    self.topic = topic
    content = .object(members)
  }

  package var payload: [UInt8] {
    switch content {
    case .bytes(let bytes): bytes
    case .object(let members): JSONWriter.bytes(.object(members))
    }
  }

  /// The members of a payload that can be merged with those of other requests; else `nil`.
  package var members: [JSONValue.Member]? {
    switch content {
    case .bytes: nil
    case .object(let members): members
    }
  }
}
