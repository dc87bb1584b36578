// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut
import Routing

/// What is emitted in the next step: log lines, records and other notices, then events of commands,
/// each in the order in which they happened.
struct Outbox {
  private var notices = Deque<Effect>()
  private var events: [CommandEvent] = []
  /// How many events at the front of ``events`` were removed.
  private var head = 0

  var hasEvents: Bool { head < events.count }

  mutating func append(_ notice: Effect) { notices.append(notice) }

  /// Appends a line of the log, if there is one.
  mutating func log(_ entry: LogEntry?) {
    if let entry { notices.append(.log(entry)) }
  }

  mutating func emit(_ event: CommandEvent) { events.append(event) }

  /// Moves all events out of a state machine, in constant time where none waits here.
  mutating func emitAll(of commands: inout CommandStateMachine) {
    guard !commands.log.events.isEmpty else { return }
    if hasEvents {
      events += commands.log.events
      commands.log.events.removeAll(keepingCapacity: true)
    } else {
      events.removeAll(keepingCapacity: true)
      head = 0
      swap(&events, &commands.log.events)
    }
  }

  mutating func popNotice() -> Effect? { notices.popFirst() }

  /// The next notice, or else the next event.
  mutating func popFirst() -> Effect? {
    if let notice = notices.popFirst() { return notice }
    guard head < events.count else { return nil }
    head += 1
    let event = events[head - 1]
    if head == events.count {
      events.removeAll(keepingCapacity: true)
      head = 0
    }
    return .emit(event)
  }
}
