// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

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
    print(event)
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
    if answers.remove(event) == nil { print(event) }
  }

  private mutating func print(_ event: EventObject) {
    if json { return StandardOutput.print(bytes: event.bytes) }
    StandardOutput.print(EventLine.text(event, withTime: false))
  }
}
