// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Values

struct DescribeCommand: GatewayCommand {
  static let name = "describe"
  static let summary = "Show all about a property: type, policy, topics, message, last commands."
  static let discussion = """
    Shows the type and its range, how the property settles, its lane, the topics on which commands \
    go out and reports come in, what the device has, the exact message that VALUE would be sent \
    in, and the last commands with who asked for them and what became of them. Nothing is sent.

    Without VALUE the message is an example: the one for the value that the property shows, or for \
    one that it may have.
    """
  static let examples = [
    Example("settle describe desk-lamp/brightness", "Everything about the lamp's brightness."),
    Example(
      "settle describe boiler/target_temperature 21.5",
      "With the message that sets it to 21.5; nothing is sent."
    ),
    Example("settle describe boiler/mode --json | jq .out.topic", "The topic of its commands."),
  ]
  static let parameters: [Parameter<Self>] =
    [
      .argument(
        "key",
        { $0.key = $1 },
        completion: .keys,
        help: "device/property, such as desk-lamp/brightness; a device means all its properties."
      ),
      .argument(
        "value",
        { $0.value = $1 },
        isOptional: true,
        completion: .values,
        help: "The value to show the message of."
      ),
    ] + connectionParameters

  var key = ""
  var value: String?
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    var client = try connection.connect()
    let answer = try client.ask(ControlRequest(.describe, key: key))
    guard case .described(let rows, _) = answer else { return .unexpected(answer) }
    if rows.count == 1, let row = rows.first, row.details != nil {
      return try describe(row, &client)
    }
    guard value == nil else {
      Terminal.complain("describe: with VALUE, KEY is one property; \(key) names \(rows.count)")
      return .usage
    }
    guard !rows.isEmpty else {
      Terminal.complain("describe: no property matches \(key)")
      return .badInput
    }
    // The rows of a pattern are short.
    for (place, row) in rows.enumerated() {
      if place > 0, !connection.json { StandardOutput.print("") }
      let reply = try client.ask(ControlRequest(.describe, key: row.key))
      guard case .described(let found, _) = reply, let row = found.first else {
        return .unexpected(reply)
      }
      let code = try describe(row, &client)
      guard code == .done else { return code }
    }
    return .done
  }

  private func describe(
    _ described: PropertyRow,
    _ client: inout ControlClient
  ) throws(ClientError) -> ExitCode {
    var row = described
    if let value {
      var request = ControlRequest(.set(ValueText.json(value)), key: row.key)
      request.isDryRun = true
      let reply = try client.ask(request)
      guard case .previewed(let messages, _) = reply else { return .unexpected(reply) }
      row.details?.message = messages.first
    }
    let shown = try client.ask(ControlRequest(.get, key: row.key))
    guard case .targets(let targets, _) = shown else { return .unexpected(shown) }
    let logged = try client.ask(ControlRequest(.log, key: row.key))
    guard case .logged(let events, _) = logged else { return .unexpected(logged) }
    show(row, targets.first, events)
    return .done
  }

  private func show(_ row: PropertyRow, _ target: TargetRow?, _ events: [EventObject]) {
    if connection.json {
      guard case .object(let members) = row.json else { return }
      let events = JSONValue.array(events.map(\.json))
      let object = JSONValue.object(members + [.init("log", events)])
      return StandardOutput.print(bytes: JSONWriter.bytes(object))
    }
    for (heading, text) in Description(row, target, isExample: value == nil).lines {
      let padding = String(repeating: " ", count: max(1, 11 - heading.count))
      StandardOutput.print(Terminal.colored(heading + padding, .faint) + Excerpt.visible(text))
    }
    guard !events.isEmpty else { return }
    StandardOutput.print("")
    if Terminal.isInteractive { StandardOutput.print(Terminal.colored("LAST COMMANDS", .faint)) }
    for event in events { StandardOutput.print(EventLine.text(event, withTime: true)) }
  }
}

/// The lines that describe a property, each with a heading.
private struct Description {
  private(set) var lines: [(heading: String, text: String)] = []

  /// `isExample` is whether the message is for a value that nobody asked for.
  init(_ row: PropertyRow, _ target: TargetRow?, isExample: Bool) {
    let name = row.name.map { "\(row.deviceName): \($0)" } ?? row.deviceName
    add("key", "\(row.key) (\(name))")
    add("type", Self.type(row))
    if !row.isReadOnly { add("settles", Self.policy(row)) }
    if !row.urgent.isEmpty {
      let words = row.urgent.map { ValueText.text($0) }.joined(separator: ", ")
      let ends = row.ends.isEmpty ? "" : ", and end \(row.ends.joined(separator: ", "))"
      add("urgent", "\(words): sent at once\(ends)")
    }
    if let details = row.details { add(details, row) }
    if !row.isHeard { add("heard", "never: no report of it has come since the gateway started") }
    if let unreadable = row.unreadable {
      let reports = unreadable.count == 1 ? "report" : "reports"
      add("unreadable", "\(unreadable.count) \(reports), the last: \(unreadable.last)")
    }
    if let target { add("now", Self.state(target)) }
    if let message = row.details?.message { add(message, isExample: isExample) }
    if let obstacle = row.details?.obstacle, row.details?.message == nil { add("away", obstacle) }
  }

  private mutating func add(_ heading: String, _ text: String) { lines.append((heading, text)) }

  private mutating func add(_ details: PropertyDetails, _ row: PropertyRow) {
    guard details.members.isEmpty else {
      add("group of", details.members.joined(separator: ", "))
      guard !details.out.topic.isEmpty else { return }
      add("lane", details.lane ?? "none")
      return add(
        "sends to",
        "\(details.out.topic) (QoS \(details.out.qos)), for all members at once"
      )
    }
    if row.isReadOnly {
      add("sends to", "nothing: it is read-only, and only the device changes it")
    } else {
      add("lane", details.lane ?? "none")
      add("sends to", "\(details.out.topic) (QoS \(details.out.qos))")
    }
    for source in details.states {
      let place = source.pointer.isEmpty ? "" : ", value at \(source.pointer)"
      add("reads", source.topic + place + (source.acknowledges ? ", acknowledgements only" : ""))
    }
    if details.states.isEmpty { add("reads", "nothing: the device reports no state") }
    for topic in details.availability { add("online", topic) }
    if let within = row.confirmWithin {
      var again = details.retries > 0 ? ", sent again \(details.retries) times at most" : ""
      if details.retries > 0, details.backoff > 1 {
        again += ", each time waiting \(NumberText.shortest(details.backoff)) times as long"
      }
      add("confirms", "within \(DurationText.text(within))\(again)")
    }
    if row.isReadOnly { return }
    if let topic = details.awake { add("awake", "\(topic): until then values wait") }
    let held = AgeText.text(details.ttlMilliseconds)
    add(
      "held",
      "\(held) while the broker or the device is "
        + (details.awake == nil ? "offline" : "offline or asleep")
    )
    if let hold = details.holdMilliseconds {
      let hands = details.hands.joined(separator: ", ")
      add("hand", "a change by \(hands) keeps others away for \(AgeText.text(hold))")
    }
    if let source = details.heldBy {
      let left = details.heldMilliseconds.map { " for another \(AgeText.text($0))" } ?? ""
      add("", "held by \(source)\(left)")
    }
    if !details.excludes.isEmpty { add("excludes", details.excludes.joined(separator: ", ")) }
    if !details.implies.isEmpty {
      let values = details.implies.map { "\($0.name) \(ValueText.text($0.value))" }
      add("implies", values.joined(separator: ", "))
    }
  }

  private mutating func add(_ message: MessagePreview, isExample: Bool) {
    add(isExample ? "example" : "would send", "\(message.topic) \(message.payload)")
    add("", "what \(ValueText.text(message.value)) would be sent as; nothing is sent now")
    let others = message.keys.filter { $0 != message.key }
    if !others.isEmpty { add("", "together with \(others.joined(separator: ", "))") }
    if let reason = message.reason { add("", "it would not be sent now: \(reason)") }
  }

  // MARK: - Words

  private static func type(_ row: PropertyRow) -> String {
    let allowed = row.kind.numberRule.map { ", \($0.allowed)" } ?? ""
    // The range has the unit already.
    let ownUnit = row.kind.numberRule.flatMap { $0.range == nil ? $0.unit : nil }
    let unit = ownUnit.map { " in \($0)" } ?? ""
    let display = row.kind.numberRule.flatMap { rule in
      rule.display.map { _ in ", shown as \(rule.shownAllowed)" }
    }
    let words = row.words.map { ", \($0.joined(separator: ", "))" } ?? ""
    return row.kind.name + allowed + unit + words + (display ?? "")
  }

  private static func policy(_ row: PropertyRow) -> String {
    let policy = row.policy
    var parts = [
      policy.delay == .zero
        ? "at once" : "\(DurationText.text(policy.delay)) after the last change"
    ]
    if let longest = policy.maxWait {
      parts.append("every \(DurationText.text(longest)) at the latest")
    }
    if policy.leading { parts.append("the first change at once") }
    if policy.minInterval > .zero {
      parts.append("\(DurationText.text(policy.minInterval)) apart at least")
    }
    return parts.joined(separator: ", ")
  }

  private static func state(_ row: TargetRow) -> String {
    let phase = row.phase.map { ", \($0.rawValue)" } ?? ""
    let age = row.ageMilliseconds.map { " \(AgeText.text($0)) ago" } ?? ""
    let actual = ValueText.text(row.actual)
    let waiting = row.waiting.map { ", \($0) waiting" } ?? ""
    return "target \(ValueText.text(row.target)), actual \(actual)\(phase)\(age)\(waiting)"
  }
}
