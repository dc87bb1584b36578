// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Values

/// Waits until keys that are watched already are quiet and done.
struct SettledWait {
  private var settling: Settling
  private var printer: EventPrinter
  /// What is in the way of the commands.
  private var obstacle: String?
  /// What the key should have at the end, as it was typed.
  var expected: JSONValue?

  /// `pattern` matches the keys, and is watched on the connection.
  init(_ keys: [String], pattern: String, printer: EventPrinter) {
    settling = Settling(keys, pattern: pattern)
    self.printer = printer
  }

  mutating func run(
    on client: consuming ControlClient,
    by limit: Deadline?
  ) throws(ClientError) -> ExitCode {
    for question in settling.questions(describing: true) { try client.send(question) }
    try client.send(Obstacle.question(about: settling.pattern))
    while !settling.isDone {
      let reply: ControlReply
      do throws(ClientError) {
        reply = try client.next(by: limit)
      } catch {
        guard case .timedOut(let time) = error else { throw error }
        try askAgain(client: &client)
        let why = settling.reason + (obstacle.map { "; \($0)" } ?? "")
        Terminal.complain("not settled within \(DurationText.text(time)): \(why)")
        return .timedOut
      }
      switch reply {
      case .devices(let rows, _):
        guard !settling.isDone else { break }
        obstacle = Obstacle.show(rows)
      case .failure, .event, .recorded, .flushed, .cancelled, .reloaded, .status, .logged,
        .words, .previewed:
        return .unexpected(reply)
      case .watched(let event, _):
        if settling.statuses[event.key] != nil { printer.heard(event) }
      case .described(let rows, _):
        if let mistake = mistakeInExpected(rows) {
          Terminal.complain(mistake)
          return .badInput
        }
      case .targets, .pending: break
      }
      for question in settling.receive(reply) { try client.send(question) }
    }
    return try verdict(client: &client)
  }

  /// Asks what the keys wait for now: that may change without an event.
  private mutating func askAgain(client: inout ControlClient) throws(ClientError) {
    guard settling.isAnswered else { return }
    for question in settling.questions() { try client.send(question) }
    let limit = Deadline(after: .seconds(1))
    while !settling.isAnswered {
      do throws(ClientError) {
        let questions = settling.receive(try client.next(by: limit))
        for question in questions { try client.send(question) }
      } catch {
        guard case .timedOut = error else { throw error }
        return
      }
    }
  }

  /// Reports the keys that have not ended well.
  private func verdict(client: inout ControlClient) throws(ClientError) -> ExitCode {
    var code = ExitCode.done
    for (key, status) in settling.statuses.sorted(by: { $0.key < $1.key }) {
      if !status.isGood {
        code = .failed
        Terminal.complain("\(key): \(try ending(of: key, status, client: &client))")
      } else if let wanted = wanted(status.description), !isEqual(status, wanted) {
        code = .failed
        let found = status.target.map(ValueText.shown) ?? "unknown"
        Terminal.complain("\(key) is \(found), not \(ValueText.shown(wanted.json))")
      }
    }
    return code
  }

  /// The last phase of a key in words, with its reason; what ended before this wait is in the log.
  private func ending(
    of key: String,
    _ status: Settling.Status,
    client: inout ControlClient
  ) throws(ClientError) -> String {
    let phase = status.phase?.rawValue ?? "unknown"
    if let event = status.event, event.phase == status.phase {
      return phase + (event.reason.map { ": \($0)" } ?? "")
    }
    try client.send(ControlRequest(.log, key: key))
    let limit = Deadline(after: ConnectionOptions.replyTimeout)
    while true {
      let reply = try client.next(by: limit)
      if case .failure = reply { return phase }
      guard case .logged(let events, _) = reply else { continue }
      guard let event = events.last(where: { $0.phase != .rejected }), let reason = event.reason
      else { return phase }
      let isLast = event.phase == status.phase
      return isLast ? "\(phase): \(reason)" : "\(event.phase.rawValue), \(reason)"
    }
  }

  // MARK: - The expected value

  /// Why the expected value is none of the property.
  private func mistakeInExpected(_ rows: [PropertyRow]) -> String? {
    guard let expected else { return nil }
    for row in rows where settling.statuses[row.key] != nil {
      if case .action = row.kind { return "\(row.key) is an action, which keeps no value" }
      do throws(ValidationError) {
        _ = try row.kind.value(from: expected)
      } catch {
        return "\(row.key): \(error)"
      }
    }
    return nil
  }

  private func wanted(_ row: PropertyRow?) -> Value? {
    guard let expected, let row else { return nil }
    return try? row.kind.value(from: expected)
  }

  private func isEqual(_ status: Settling.Status, _ wanted: Value) -> Bool {
    guard let target = status.target, let kind = status.description?.kind,
      let found = try? kind.value(from: target)
    else { return false }
    if case .color(let left) = found, case .color(let right) = wanted {
      return left.hexText == right.hexText
    }
    return found == wanted
  }
}

/// Sends a change, and waits until its keys are quiet and done, from any source.
struct SettledFollower {
  let request: ControlRequest
  let options: ChangeOptions
  let json: Bool

  func run(
    on client: consuming ControlClient,
    by limit: Deadline?
  ) throws(ClientError) -> ExitCode {
    let pattern = request.deviceMembers == nil ? request.key : "\(request.key)/*"
    var printer = EventPrinter(json: json)
    // Before the change, so that no event is missed.
    try client.send(ControlRequest(.watch, key: pattern))
    try client.send(request)
    var keys: Set<String> = []
    var parts = 1
    while keys.count < parts {
      let reply: ControlReply
      do throws(ClientError) {
        reply = try client.next(by: limit ?? Deadline(after: ConnectionOptions.replyTimeout))
      } catch {
        Terminal.complain("\(error)")
        if case .timedOut = error, limit != nil { return .timedOut }
        return .unavailable
      }
      switch reply {
      case .event(let event, _):
        guard event.phase != .rejected else {
          if json { StandardOutput.print(bytes: event.bytes) }
          Terminal.complain("\(event.key): \(event.reason ?? "rejected")")
          return .badInput
        }
        parts = max(parts, event.of ?? 1)
        keys.insert(event.key)
        printer.show(event)
      case .watched(let event, _): printer.hold(event)
      case .failure, .recorded, .targets, .pending, .described, .flushed, .cancelled, .reloaded,
        .status, .logged, .devices, .words, .previewed:
        return .unexpected(reply)
      }
    }
    printer.release(keys)
    var wait = SettledWait(Array(keys), pattern: pattern, printer: printer)
    return try wait.run(on: client, by: limit)
  }
}

/// Prints the events of keys, each once.
struct EventPrinter {
  let json: Bool
  /// Events of keys that may not be of interest.
  private var held: [EventObject] = []
  /// What was printed as an answer and will be heard again.
  private var answers: Set<EventObject> = []

  init(json: Bool) { self.json = json }

  /// Prints the answer to a change.
  mutating func show(_ answer: EventObject) {
    var event = answer
    event.of = nil
    answers.insert(event)
    EventLine.print(event, asJSON: json, withTime: false)
  }

  mutating func hold(_ event: EventObject) { held.append(event) }

  /// Prints those of the held events that are about `keys`.
  mutating func release(_ keys: Set<String>) {
    let events = held
    held = []
    for event in events where keys.contains(event.key) { heard(event) }
  }

  /// Prints an event unless it was printed as an answer.
  mutating func heard(_ event: EventObject) {
    guard answers.remove(event) == nil else { return }
    EventLine.print(event, asJSON: json, withTime: false)
  }
}
