// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// One line of the grammar that the socket, `simulate` and `demo --script` share.
package struct ControlRequest: Hashable, Sendable {
  package enum Operation: Hashable, Sendable {
    /// A value of a property; or, where the key is a device, an object of properties.
    case set(JSONValue)
    case step(StepAmount)
    case toggle
    /// The values of a scene, whose name is the key.
    case scene
    case cancel
    case flush
    case get
    case pending
    case watch
    case describe
    /// Emit every accepted change as a line for `simulate`.
    case record
    /// Reload the configuration; has no key.
    case reload
    /// The state of the gateway as a whole; has no key.
    case status
    /// The last commands of keys.
    case log
    /// The devices whose ids match the pattern.
    case devices
  }

  /// The phase until which a change is followed; every phase up to it is a reply.
  package enum Wait: String, Hashable, Sendable, CaseIterable { case sent, confirmed }

  /// What a shell completes: keys, those that a change of one kind accepts, or areas.
  package enum Completion: String, Hashable, Sendable, CaseIterable {
    case any, step, toggle
    /// Keys that can be set, and their devices.
    case set
    /// Areas, each as one word.
    case area
  }

  package var operation: Operation
  /// The value to set with its numbers as texts, where they are not in their shortest form: a text
  /// such as `12.30` keeps its digits.
  package var written: JSONValue?
  /// The key, or the pattern for operations that allow one.
  package var key: String
  /// The caller's `id` exactly as received, a text or a number, for replies on the same connection.
  package var replyID: JSONValue?
  package var source: String?
  /// The person who asked, as events name them.
  package var by: String?
  package var now = false
  /// Whether a change is not made, but answered with the message that it would be sent in.
  package var isDryRun = false
  package var ttl: Duration?
  package var wait: Wait?
  /// The words to answer with in place of rows of devices.
  package var completion: Completion?
  /// The time in milliseconds on a virtual or scripted clock.
  package var at: Double?

  package init(_ operation: Operation, key: String) {
    self.operation = operation
    self.key = key
  }

  /// The caller's `id` as text, for events on every surface.
  package var id: String? {
    get { replyID.flatMap(Self.text) }
    set { replyID = newValue.map(JSONValue.string) }
  }

  /// The properties to set at one instant, if this sets several of the device that the key names.
  package var deviceMembers: [JSONValue.Member]? {
    guard case .set(.object(let members)) = operation, !key.utf8.contains(UInt8(ascii: "/")) else {
      return nil
    }
    return members
  }

  /// Reads one line, whose keys usually name a device and a property.
  ///
  /// The error names a missing, unknown or misplaced member, or a wrong type.
  package init(line: Span<UInt8>, keys: KeySyntax = .deviceProperty) throws(GrammarError) {
    let document: JSONValue
    do throws(JSONParseError) {
      document = try JSONParser.parse(line)
    } catch {
      throw GrammarError(
        code: .syntax,
        message: "not JSON: \(error.message) (column \(error.column))",
        id: nil
      )
    }
    try self.init(document, keys: keys)
    keepWriting(of: line)
  }

  /// Reads one parsed line.
  package init(_ document: JSONValue, keys: KeySyntax = .deviceProperty) throws(GrammarError) {
    self = try RequestReader(document, keys: keys).request()
  }

  /// Finds ``written`` in the text of the request, or of the value alone.
  package mutating func keepWriting(of text: Span<UInt8>) {
    guard case .set(let value) = operation,
      value.isReal || deviceMembers?.contains(where: \.value.isReal) ?? false,
      let document = try? JSONParser.parseQuotingNumbers(text)
    else { return }
    let stated = document["set"] ?? (deviceMembers == nil ? document["value"] : nil) ?? document
    guard let members = deviceMembers else {
      if stated != .string(JSONWriter.text(value)) { written = stated }
      return
    }
    written = .object(
      members.map { member in
        guard member.value.isReal, let text = stated[member.name] else { return member }
        return .init(member.name, text)
      }
    )
  }

  /// An `id` as text, numbers in the shortest form; `nil` for any other type.
  static func text(_ id: JSONValue) -> String? {
    switch id {
    case .string(let text): text
    case .integer, .number: JSONWriter.text(id)
    case .null, .boolean, .array, .object: nil
    }
  }
}

extension ControlRequest {
  /// The request as a line, without a line break.
  package var line: [UInt8] { JSONWriter.bytes(json) }

  /// Like ``json``, with the time first, for recordings.
  package var timed: JSONValue {
    guard case .object(let members) = json else { return json }
    let isTime = { (member: JSONValue.Member) in member.name == "at" }
    return .object(members.filter(isTime) + members.filter { !isTime($0) })
  }

  /// The request as an object, members in the order of the grammar.
  package var json: JSONValue {
    var members: [JSONValue.Member] = []
    func add(_ name: String, _ value: JSONValue?) {
      if let value { members.append(.init(name, value)) }
    }
    switch operation {
    case .set, .step, .toggle, .cancel, .flush: add("key", .string(key))
    case .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices, .scene: break
    }
    switch operation {
    case .set(let value): add("set", written ?? value)
    case .step(let amount): add("step", amount.json)
    case .toggle: add("toggle", true)
    case .scene: add("scene", .string(key))
    case .cancel: add("cancel", true)
    case .flush: add("flush", true)
    case .get: add("get", .string(key))
    case .pending: add("pending", .string(key))
    case .watch: add("watch", .string(key))
    case .describe: add("describe", .string(key))
    case .record: add("record", .string(key))
    case .reload: add("reload", true)
    case .status: add("status", true)
    case .log: add("log", .string(key))
    case .devices: add("devices", .string(key))
    }
    add("id", replyID)
    add("source", source.map(JSONValue.string))
    add("by", by.map(JSONValue.string))
    add("now", now ? true : nil)
    add("dry_run", isDryRun ? true : nil)
    add("ttl", ttl.map { .string(DurationText.text($0)) })
    add("wait", wait.map { .string($0.rawValue) })
    add("complete", completion.map { .string($0.rawValue) })
    add("at", at.map(JSONValue.number))
    return .object(members)
  }
}

/// The syntax of keys, independent of whether a key exists.
package enum KeySyntax: Hashable, Sendable {
  /// `device/property`, as in the gateway.
  case deviceProperty
  /// Any text, as `simulate` allows without devices.
  case any

  /// The longest key or pattern, in bytes.
  package static let longest = 512

  /// Why `key` is not a valid key; `nil` if it is.
  package func mistake(inKey key: String) -> String? {
    if isPlain(key) { return nil }
    if let mistake = commonMistake(in: key, called: "key") { return mistake }
    if key.utf8.contains(where: { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }) {
      return #"a key names one property, and "\#(Excerpt.of(key))" is a pattern;"#
        + " patterns are allowed in get, pending, watch, flush and cancel"
    }
    guard self == .deviceProperty else { return nil }
    let parts = key.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
      return "a key is device/property, such as desk-lamp/brightness;"
        + #" found "\#(Excerpt.of(key))""#
    }
    return nil
  }

  /// Why `name` cannot name a device; `nil` when it can.
  package func mistake(inDevice name: String) -> String? {
    if let mistake = commonMistake(in: name, called: "device") { return mistake }
    guard self == .deviceProperty, !name.contains(where: { "*?/".contains($0) }) else {
      return "a device is named without a slash or wildcards"
    }
    return nil
  }

  /// Why `pattern` cannot match keys; `nil` when it can.
  package func mistake(inPattern pattern: String) -> String? {
    commonMistake(in: pattern, called: "pattern")
  }

  /// The fast path: whether a key is obviously valid, that is printable ASCII with one slash.
  private func isPlain(_ key: String) -> Bool {
    let bytes = key.utf8.span
    guard (1...Self.longest).contains(bytes.count) else { return false }
    var slashes = 0
    for index in bytes.indices {
      switch bytes[index] {
      case UInt8(ascii: "/"): slashes += 1
      case UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "+"), UInt8(ascii: "#"): return false
      case 0x20..<0x7F: break
      default: return false
      }
    }
    guard self == .deviceProperty else { return true }
    return slashes == 1 && bytes[0] != UInt8(ascii: "/")
      && bytes[bytes.count - 1] != UInt8(ascii: "/")
  }

  private func commonMistake(in text: String, called name: String) -> String? {
    if text.isEmpty { return "a \(name) must not be empty" }
    if text.utf8.count > Self.longest {
      return "a \(name) has at most \(Self.longest) bytes; found \(text.utf8.count)"
    }
    if let scalar = text.unicodeScalars.first(where: Self.isControl) {
      return "a \(name) must not contain control characters; found \(scalar.escaped(asASCII: true))"
    }
    if let wildcard = text.first(where: { $0 == "+" || $0 == "#" }) {
      return #"a \#(name) must not contain "\#(wildcard)"; the wildcards of patterns are * and ?"#
    }
    return nil
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
  }
}
