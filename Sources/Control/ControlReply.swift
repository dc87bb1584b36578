// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// One line of the gateway; each carries the request's `id`, `null` where none was given.
package enum ControlReply: Hashable, Sendable {
  /// A phase of a change; the `id` is the caller's, or a new one of the gateway.
  case event(EventObject, id: JSONValue?)
  /// A watched event.
  case watched(EventObject, watch: JSONValue?)
  /// An accepted change, with its time in `at`, in the format of `simulate`.
  case recorded(ControlRequest, record: JSONValue?)
  case targets([TargetRow], id: JSONValue?)
  case pending([PendingRow], id: JSONValue?)
  case described([PropertyRow], id: JSONValue?)
  case flushed(Int, id: JSONValue?)
  case cancelled(Int, id: JSONValue?)
  case reloaded(ReloadReport, id: JSONValue?)
  case status(StatusReport, id: JSONValue?)
  /// The last commands of keys, as events.
  case logged([EventObject], id: JSONValue?)
  case devices([DeviceRow], id: JSONValue?)
  /// What a shell offers, see ``ControlRequest/completion``.
  case words([String], id: JSONValue?)
  /// The message of a change that was not made.
  case previewed([MessagePreview], id: JSONValue?)
  case failure(ErrorReply, id: JSONValue?)

  /// The request's `id`, or the watch's.
  package var id: JSONValue? {
    switch self {
    case .event(let event, let id): id ?? .string(event.id)
    case .watched(_, let id), .recorded(_, let id), .targets(_, let id), .pending(_, let id),
      .described(_, let id),
      .flushed(_, let id), .cancelled(_, let id), .reloaded(_, let id), .status(_, let id),
      .logged(_, let id), .devices(_, let id), .words(_, let id), .previewed(_, let id),
      .failure(_, let id):
      id
    }
  }
}

// MARK: - Writing

extension ControlReply {
  /// The reply as a line, without a line break.
  package var line: [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  /// Appends the reply as a line, without a line break.
  package func append(to output: inout [UInt8]) {
    switch self {
    case .event(let event, let id):
      event.append(to: &output, replyID: id)
      Self.addParts(event.of ?? 0, to: &output)
    case .watched(let event, let id): Self.appendWatched(event.bytes, watch: id, to: &output)
    case .recorded(let change, let id):
      output.append(contentsOf: #"{"record":"#.utf8)
      JSONWriter.append(id ?? .null, to: &output)
      output.append(contentsOf: #","change":"#.utf8)
      JSONWriter.append(change.timed, to: &output)
      output.append(UInt8(ascii: "}"))
    case .targets(let rows, let id): append("get", rows.lazy.map(\.json), id, to: &output)
    case .pending(let rows, let id): append("pending", rows.lazy.map(\.json), id, to: &output)
    case .described(let rows, let id): append("describe", rows.lazy.map(\.json), id, to: &output)
    case .flushed(let count, let id): append("flushed", .integer(Int64(count)), id, to: &output)
    case .cancelled(let count, let id): append("cancelled", .integer(Int64(count)), id, to: &output)
    case .reloaded(let report, let id): append("reloaded", report.json, id, to: &output)
    case .status(let report, let id): append("status", report.json, id, to: &output)
    case .logged(let events, let id): append("log", events.lazy.map(\.json), id, to: &output)
    case .devices(let rows, let id): append("devices", rows.lazy.map(\.json), id, to: &output)
    case .words(let words, let id):
      append("complete", words.lazy.map(JSONValue.string), id, to: &output)
    case .previewed(let messages, let id):
      append("dry_run", messages.lazy.map(\.json), id, to: &output)
    case .failure(let failure, let id): append("error", failure.json, id, to: &output)
    }
  }

  /// Adds to an answer, which ends `output`, how many answers the change of a device has.
  package static func addParts(_ count: Int, to output: inout [UInt8]) {
    guard count > 0, output.popLast() != nil else { return }
    output.append(contentsOf: ",\"of\":\(count)}".utf8)
  }

  /// Appends a watched event whose text exists already, as when several clients watch it.
  package static func appendWatched(
    _ event: [UInt8],
    watch id: JSONValue?,
    to output: inout [UInt8]
  ) {
    output.append(contentsOf: #"{"watch":"#.utf8)
    JSONWriter.append(id ?? .null, to: &output)
    output.append(contentsOf: #","event":"#.utf8)
    output.append(contentsOf: event)
    output.append(UInt8(ascii: "}"))
  }

  private func append(
    _ name: String,
    _ rows: some Sequence<JSONValue>,
    _ id: JSONValue?,
    to output: inout [UInt8]
  ) {
    var list = RowListText(name, id: id)
    list.begin(to: &output)
    for row in rows { list.append(row, to: &output) }
    list.end(to: &output)
  }

  private func append(
    _ name: String,
    _ value: JSONValue,
    _ id: JSONValue?,
    to output: inout [UInt8]
  ) {
    JSONWriter.append(
      .object([.init(name, value), .init("id", id ?? .null)]),
      to: &output
    )
  }
}

// MARK: - Reading

extension ControlReply {
  /// Reads one line; `nil` when it is not a reply of this protocol.
  package init?(line: Span<UInt8>) {
    guard let json = try? JSONParser.parse(line) else { return nil }
    self.init(json)
  }

  /// Reads one reply; members that this version does not know are ignored.
  package init?(_ json: JSONValue) {
    let id = json["id"]?.unlessNull
    if let event = EventObject(json) {
      self = .event(event, id: id)
    } else if let event = json["event"].flatMap(EventObject.init) {
      self = .watched(event, watch: json["watch"]?.unlessNull)
    } else if let change = json["change"].flatMap({ try? ControlRequest($0) }) {
      self = .recorded(change, record: json["record"]?.unlessNull)
    } else if let failure = json["error"].flatMap(ErrorReply.init) {
      self = .failure(failure, id: id)
    } else if case .array(let rows) = json["get"] {
      self = .targets(rows.compactMap(TargetRow.init), id: id)
    } else if case .array(let rows) = json["pending"] {
      self = .pending(rows.compactMap(PendingRow.init), id: id)
    } else if case .array(let rows) = json["describe"] {
      self = .described(rows.compactMap(PropertyRow.init), id: id)
    } else if let count = json["flushed"]?.count {
      self = .flushed(count, id: id)
    } else if let count = json["cancelled"]?.count {
      self = .cancelled(count, id: id)
    } else if let report = json["status"].flatMap(StatusReport.init) {
      self = .status(report, id: id)
    } else if case .array(let events) = json["log"] {
      self = .logged(events.compactMap(EventObject.init), id: id)
    } else if case .array(let rows) = json["devices"] {
      self = .devices(rows.compactMap(DeviceRow.init), id: id)
    } else if case .array(let words) = json["complete"] {
      self = .words(words.compactMap(\.string), id: id)
    } else if case .array(let messages) = json["dry_run"] {
      self = .previewed(messages.compactMap(MessagePreview.init), id: id)
    } else if let report = json["reloaded"].flatMap(ReloadReport.init) {
      self = .reloaded(report, id: id)
    } else {
      return nil
    }
  }
}

/// Writes a reply of rows, such as `{"get":[…],"id":…}`, row by row.
///
/// The parts that the three methods append are one line, which is complete after ``end(to:)``.
package struct RowListText: Sendable {
  private let name: String
  private let id: JSONValue?
  private var isEmpty = true

  /// A list that is called `name`, in the reply to the request with `id`.
  package init(_ name: String, id: JSONValue?) {
    self.name = name
    self.id = id
  }

  package func begin(to output: inout [UInt8]) {
    output.append(UInt8(ascii: "{"))
    JSONWriter.append(.string(name), to: &output)
    output.append(contentsOf: ":[".utf8)
  }

  package mutating func append(_ row: JSONValue, to output: inout [UInt8]) {
    if !isEmpty { output.append(UInt8(ascii: ",")) }
    isEmpty = false
    JSONWriter.append(row, to: &output)
  }

  package func end(to output: inout [UInt8]) {
    output.append(contentsOf: #"],"id":"#.utf8)
    JSONWriter.append(id ?? .null, to: &output)
    output.append(UInt8(ascii: "}"))
  }
}

/// A row of `{"dry_run":[…]}`: a message that values would be sent in, if they were sent now.
package struct MessagePreview: ListedObject, Hashable, Sendable {
  /// The first of the keys that were asked for.
  package var key = ""
  /// Its value after steps are added and the number is snapped to its step.
  package var value = JSONValue.null
  package var topic = ""
  /// The payload as text; bytes that are no UTF-8 do not occur.
  package var payload = ""
  package var qos = 0
  /// The keys whose values the message has: those asked for, and pending ones that are merged with
  /// them.
  package var keys: [String] = []
  /// Why the value would not be sent now; `nil` if it would.
  package var reason: String?

  package init() {}

  package mutating func list(_ members: inout MemberList) {
    members.text("key", &key, isNeeded: true)
    members.member("value", &value, isNeeded: true, read: { $0 }, write: { $0 })
    members.text("topic", &topic, isNeeded: true)
    members.text("payload", &payload, isNeeded: true)
    members.count("qos", &qos)
    members.texts("keys", &keys)
    members.text("reason", &reason)
  }
}

/// One line of `get`: a key's last target and the last value that the device reported.
package struct TargetRow: ListedObject, Hashable, Sendable {
  package var key = ""
  package var target: JSONValue?
  package var actual: JSONValue?
  /// The phase of the key's last command; `nil` before the first.
  package var phase: Phase?
  /// How long ago the target, the actual value or the phase last changed; `nil` if never.
  package var ageMilliseconds: Int?
  /// How many commands of an action wait, if several do; otherwise `nil`.
  package var waiting: Int?
  /// Whether the property was ever reported, or has no state topic.
  package var isHeard = true

  package init() {}

  package init(
    key: String,
    target: JSONValue?,
    actual: JSONValue?,
    phase: Phase?,
    ageMilliseconds: Int?,
    waiting: Int? = nil
  ) {
    self.key = key
    self.target = target
    self.actual = actual
    self.phase = phase
    self.ageMilliseconds = ageMilliseconds
    self.waiting = waiting
  }

  package mutating func list(_ members: inout MemberList) {
    members.text("key", &key, isNeeded: true)
    members.value("target", &target)
    members.value("actual", &actual)
    members.word("phase", &phase)
    members.count("age_ms", &ageMilliseconds)
    members.flag("heard", &isHeard, usual: true)
    members.count("waiting", &waiting, isShort: true)
  }
}

/// The body of `{"reloaded":{…}}`: the effects of reloading the configuration.
package struct ReloadReport: ListedObject, Hashable, Sendable {
  /// The number of devices and keys now.
  package var devices = 0
  package var keys = 0
  /// Keys that are new, gone or changed, in order of definition.
  package var added: [String] = []
  package var removed: [String] = []
  package var changed: [String] = []
  /// Changed sections that apply only after a restart.
  package var restart: [String] = []
  /// Warnings, as `file:line:column: message`.
  package var warnings: [String] = []
  /// The files that were read, with absolute paths.
  package var files: GatewayFiles?

  package init() {}

  package init(devices: Int, keys: Int) {
    self.devices = devices
    self.keys = keys
  }

  package mutating func list(_ members: inout MemberList) {
    members.count("devices", &devices, isNeeded: true)
    members.count("keys", &keys, isNeeded: true)
    members.texts("added", &added)
    members.texts("removed", &removed)
    members.texts("changed", &changed)
    members.texts("restart", &restart)
    members.texts("warnings", &warnings)
    members.object("files", &files)
  }
}
