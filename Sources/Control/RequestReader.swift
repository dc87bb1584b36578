// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// Reads the members of one request.
struct RequestReader {
  /// All members, for suggestions.
  private static let known = [
    "set", "value", "step", "toggle", "scene", "cancel", "flush", "get", "pending", "watch",
    "describe", "record", "reload", "status", "log", "devices", "key",
    "id", "source", "by", "now", "ttl", "wait", "at", "dry_run", "complete",
  ]

  private let members: [JSONValue.Member]
  private let keys: KeySyntax
  private let id: JSONValue?

  init(_ document: JSONValue, keys: KeySyntax) throws(GrammarError) {
    guard case .object(let members) = document else {
      throw GrammarError(
        code: .badType,
        message: #"a request is an object, such as {"key":"desk-lamp/brightness","set":40};"#
          + " found \(document.kindInWords)",
        id: nil
      )
    }
    self.members = members
    self.keys = keys
    switch document["id"] {
    case nil, .null: id = nil
    case .some(let value):
      if let mistake = Self.mistake(inID: value) {
        throw GrammarError(code: .badType, message: mistake, id: nil)
      }
      id = value
    }
  }

  func request() throws(GrammarError) -> ControlRequest {
    let operation = try operationMember()
    var request = try request(for: operation)
    request.replyID = id
    for member in members {
      switch Self.role(of: member.name) {
      case .operation, .none: continue
      case .key: try checkPlace(of: member, in: request)
      case .option: try read(member, into: &request)
      }
    }
    return request
  }

  /// The one member that names the operation.
  private func operationMember() throws(GrammarError) -> JSONValue.Member {
    var first: JSONValue.Member?
    var count = 0
    for member in members {
      switch Self.role(of: member.name) {
      case .key, .option: continue
      case .operation:
        if first == nil { first = member }
        count += 1
      case nil:
        let hint = Suggestion.hint(for: member.name, in: Self.known)
        throw error(.unknownMember, #"unknown member "\#(Excerpt.of(member.name))""# + hint)
      }
    }
    guard let operation = first else {
      throw error(
        .missingOperation,
        "nothing to do: one of set, step, toggle, scene, cancel, flush, get, pending, watch, describe, record,"
          + " reload, status, log or devices is needed"
      )
    }
    guard count == 1 else {
      let found = members.lazy.map(\.name).filter { Self.role(of: $0) == .operation }
      throw error(
        .severalOperations,
        "one operation per line; found \(found.joined(separator: ", "))"
      )
    }
    return operation
  }

  /// The purpose of a member.
  private enum Role {
    case operation
    /// Read with the operation that needs it.
    case key
    case option
  }

  /// The role of a member, `nil` for one that does not exist; the usual ones come first.
  private static func role(of name: String) -> Role? {
    switch name {
    case "key": .key
    case "set": .operation
    case "id", "source", "by", "now", "ttl", "wait", "at", "dry_run", "complete": .option
    case "value", "step", "toggle", "scene", "cancel", "flush", "get", "pending", "watch",
      "describe",
      "record", "reload", "status", "log", "devices":
      .operation
    default: nil
    }
  }

  private func request(for member: JSONValue.Member) throws(GrammarError) -> ControlRequest {
    switch member.name {
    case "set", "value":
      return ControlRequest(.set(member.value), key: try keyToSet(member))
    case "step":
      return ControlRequest(.step(try amount(member)), key: try key(for: "step"))
    case "toggle":
      try expectTrue(member)
      return ControlRequest(.toggle, key: try key(for: "toggle"))
    case "scene":
      // A name is one wherever the request comes from.
      guard let name = member.value.string,
        KeySyntax.deviceProperty.mistake(inDevice: name) == nil
      else {
        throw wrongType(member, expected: #"the name of a scene, such as "evening""#)
      }
      return ControlRequest(.scene, key: name)
    case "cancel": return ControlRequest(.cancel, key: try keyOrPattern(member))
    case "flush": return ControlRequest(.flush, key: try keyOrPattern(member))
    case "get": return ControlRequest(.get, key: try pattern(member))
    case "pending": return ControlRequest(.pending, key: try pattern(member))
    case "describe": return ControlRequest(.describe, key: try pattern(member))
    case "record": return ControlRequest(.record, key: try pattern(member))
    case "log": return ControlRequest(.log, key: try pattern(member))
    case "devices": return ControlRequest(.devices, key: try pattern(member))
    case "reload":
      try expectTrue(member)
      return ControlRequest(.reload, key: "")
    case "status":
      try expectTrue(member)
      return ControlRequest(.status, key: "")
    default: return ControlRequest(.watch, key: try pattern(member))
    }
  }

  /// Reads a member that accompanies the operation.
  private func read(
    _ member: JSONValue.Member,
    into request: inout ControlRequest
  ) throws(GrammarError) {
    try checkPlace(of: member, in: request)
    if case .null = member.value, !["now", "dry_run"].contains(member.name) { return }
    switch member.name {
    case "source": request.source = try text(member, atMost: 64)
    case "by": request.by = try text(member, atMost: 256)
    case "now": request.now = try boolean(member)
    case "dry_run": request.isDryRun = try boolean(member)
    case "ttl": request.ttl = try duration(member)
    case "wait": request.wait = try wait(member)
    case "complete": request.completion = try completion(member)
    case "at": request.at = try instant(member)
    default: break  // `id` has been read.
    }
  }

  private func checkPlace(
    of member: JSONValue.Member,
    in request: ControlRequest
  ) throws(GrammarError) {
    switch request.operation {
    case _ where member.name == "complete":
      if request.operation == .devices { return }
    case .set, .step, .toggle: return
    case .scene:
      if member.name != "key" { return }
    case .cancel, .flush:
      if ["key", "id", "source", "at"].contains(member.name) { return }
    case .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices:
      if ["id", "source"].contains(member.name) { return }
    }
    let operation = members.first { Self.role(of: $0.name) == .operation }?.name ?? ""
    let hint =
      member.name == "key" && request.operation != .reload && request.operation != .status
      ? #"; write the pattern there: {"\#(operation)":"desk-lamp/*"}"# : ""
    throw error(.misplacedMember, #""\#(member.name)" does not go with "\#(operation)""# + hint)
  }

  private func error(_ code: ErrorCode, _ message: String) -> GrammarError {
    GrammarError(code: code, message: message, id: id)
  }

  private func wrongType(
    _ member: JSONValue.Member,
    expected: String,
    hint: String = ""
  ) -> GrammarError {
    error(
      .badType,
      #""\#(member.name)" must be \#(expected); found \#(member.value.kindInWords)\#(hint)"#
    )
  }

  private static func mistake(inID id: JSONValue) -> String? {
    guard let text = ControlRequest.text(id) else {
      return #""id" must be a text or a number; found \#(id.kindInWords)"#
    }
    if text.isEmpty { return #""id" must not be empty"# }
    let count = text.unicodeScalars.count
    if count > 256 { return #""id" has at most 256 characters; found \#(count)"# }
    return nil
  }
}

// MARK: - Keys and patterns

extension RequestReader {
  private func key(for operation: String) throws(GrammarError) -> String {
    let key = try keyText(for: operation)
    if let mistake = keys.mistake(inKey: key) { throw error(.badKey, mistake) }
    return key
  }

  /// The key of a value; or the name of a device, whose value is an object of properties.
  private func keyToSet(_ member: JSONValue.Member) throws(GrammarError) -> String {
    let key = try keyText(for: member.name)
    guard let mistake = keys.mistake(inKey: key) else { return key }
    guard keys.mistake(inDevice: key) == nil else { throw error(.badKey, mistake) }
    if case .object = member.value { return key }
    throw error(
      .badKey,
      mistake
        + #"; to set several properties of a device, "set" is an object: {"brightness":40}"#
    )
  }

  private func keyText(for operation: String) throws(GrammarError) -> String {
    guard let member = members.first(where: { $0.name == "key" }) else {
      throw error(
        .missingKey,
        #""\#(operation)" needs a "key", such as "key":"desk-lamp/brightness""#
      )
    }
    guard let key = member.value.string else { throw wrongType(member, expected: "a text") }
    return key
  }

  /// The pattern of `{"flush":"desk-lamp/*"}` or of `{"key":"desk-lamp/*","flush":true}`.
  private func keyOrPattern(_ member: JSONValue.Member) throws(GrammarError) -> String {
    if member.value.string != nil {
      guard !members.contains(where: { $0.name == "key" }) else {
        throw error(
          .severalOperations,
          #""\#(member.name)" already has a pattern; remove "key", or set it to true"#
        )
      }
      return try pattern(member)
    }
    guard member.value == .boolean(true) else {
      throw wrongType(member, expected: #"true beside a "key", or a pattern"#)
    }
    let key = try keyText(for: member.name)
    if let mistake = keys.mistake(inPattern: key) { throw error(.badKey, mistake) }
    return key
  }

  private func pattern(_ member: JSONValue.Member) throws(GrammarError) -> String {
    guard let pattern = member.value.string else {
      throw wrongType(member, expected: #"a key or a pattern, such as "desk-lamp/*" or "*""#)
    }
    if let mistake = keys.mistake(inPattern: pattern) { throw error(.badKey, mistake) }
    return pattern
  }
}

// MARK: - Typed members

extension RequestReader {
  /// The amount of a step: a number, or a text such as `"+10%"`.
  private func amount(_ member: JSONValue.Member) throws(GrammarError) -> StepAmount {
    if let number = member.value.double { return .number(number) }
    if let amount = member.value.string.flatMap({ StepAmount(percentage: $0) }) { return amount }
    let unsigned = member.value.string.map { $0.hasPrefix("+") ? String($0.dropFirst()) : $0 }
    let hint = unsigned.flatMap(Double.init).map {
      $0.isFinite ? "; did you mean \(JSONWriter.text(.number($0))), without quotes?" : ""
    }
    throw wrongType(member, expected: "a number", hint: hint ?? "")
  }

  private func boolean(_ member: JSONValue.Member) throws(GrammarError) -> Bool {
    guard case .boolean(let flag) = member.value else {
      throw wrongType(member, expected: "true or false")
    }
    return flag
  }

  private func expectTrue(_ member: JSONValue.Member) throws(GrammarError) {
    guard member.value == .boolean(true) else {
      let found = member.value == .boolean(false) ? "false" : member.value.kindInWords
      throw error(.badType, #""\#(member.name)" must be true; found \#(found)"#)
    }
  }

  private func text(_ member: JSONValue.Member, atMost limit: Int) throws(GrammarError) -> String {
    guard let text = member.value.string else { throw wrongType(member, expected: "a text") }
    // JSON Schema counts these characters, too.
    let count = text.unicodeScalars.count
    guard count <= limit else {
      throw error(
        .badValue,
        #""\#(member.name)" has at most \#(limit) characters; found \#(count)"#
      )
    }
    return text
  }

  private func duration(_ member: JSONValue.Member) throws(GrammarError) -> Duration {
    if member.value.double != nil {
      let number = JSONWriter.text(member.value)
      throw wrongType(
        member,
        expected: "a text with a unit",
        hint: #"; did you mean "\#(number)s" or "\#(number)ms"?"#
      )
    }
    guard let text = member.value.string else {
      throw wrongType(member, expected: DurationText.forms)
    }
    do throws(DurationTextError) {
      return try DurationText.read(text)
    } catch {
      throw self.error(.badValue, #""\#(member.name)" \#(error.description)"#)
    }
  }

  private func completion(
    _ member: JSONValue.Member
  ) throws(GrammarError) -> ControlRequest.Completion {
    guard let word = member.value.string else { throw wrongType(member, expected: "a text") }
    if let completion = ControlRequest.Completion(rawValue: word) { return completion }
    let words = ControlRequest.Completion.allCases.map(\.rawValue)
    throw error(
      .badValue,
      #""complete" must be one of \#(words.joined(separator: ", ")); found "\#(Excerpt.of(word))""#
        + Suggestion.hint(for: word, in: words)
    )
  }

  private func wait(_ member: JSONValue.Member) throws(GrammarError) -> ControlRequest.Wait? {
    switch member.value {
    case .boolean(let flag): return flag ? .confirmed : nil
    case .string(let word):
      guard let wait = ControlRequest.Wait(rawValue: word) else {
        throw error(
          .badValue,
          #""wait" must be "sent" or "confirmed"; found "\#(Excerpt.of(word))""#
            + Suggestion.hint(for: word, in: ControlRequest.Wait.allCases.map(\.rawValue))
        )
      }
      return wait
    case .null, .integer, .number, .array, .object:
      throw wrongType(member, expected: #""sent" or "confirmed""#)
    }
  }

  private func instant(_ member: JSONValue.Member) throws(GrammarError) -> Double {
    guard let milliseconds = member.value.double else {
      throw wrongType(member, expected: "a number of milliseconds")
    }
    guard (0...9e15).contains(milliseconds) else {
      throw error(.badValue, #""at" is a number of milliseconds from 0; found \#(milliseconds)"#)
    }
    return milliseconds
  }
}

extension JSONValue {
  /// The type of the value, for messages: `a text`, `a number`.
  var kindInWords: String {
    switch self {
    case .null: "null"
    case .boolean: "true or false"
    case .integer, .number: "a number"
    case .string: "a text"
    case .array: "a list"
    case .object: "an object"
    }
  }
}
