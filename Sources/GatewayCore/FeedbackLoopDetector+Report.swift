// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

extension FeedbackLoopDetector {
  /// A change that is part of a loop.
  struct Loop {
    /// Why the change is rejected.
    var error: ValidationError
    /// The line for the log; `nil` for a loop that was found before.
    var entry: LogEntry?
  }

  /// Judges a value that arrived as a message on `topic`; `nil` for one that is part of no loop.
  mutating func check(
    _ key: KeyIndex,
    _ value: Value,
    _ commands: borrowing CommandStateMachine,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) -> Loop? {
    guard case .loop(let source, let isNew) = requested(key, value, at: now) else { return nil }
    let entry = commands.registry[key]
    let (command, state) = (topic(), entry.property.states[source].topic)
    let values = [commands.dispatcher.status(key).target, value].compactMap { $0?.bareText }
    var loop = Loop(error: .feedbackLoop(commands: command, states: state, values: values))
    guard isNew else { return loop }
    loop.entry = LogEntry(
      .warning,
      "Feedback loop stopped: reports from the state topic return on the command topic",
      [
        "key": entry.key, "commands": command, "states": state,
        "values": values.map { Excerpt.of($0) }.joined(separator: " and "),
      ]
    )
    return loop
  }
}
