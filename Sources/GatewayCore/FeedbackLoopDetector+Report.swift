// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

extension FeedbackLoopDetector {
  /// A change that is part of a loop.
  struct Loop {
    /// Why the change is rejected.
    var error: ValidationError
    /// The line for the log; `nil` for a loop that was found before.
    var entry: LogEntry?
  }

  /// Judges a change that arrived as a message on `topic`; `nil` for one that is part of no loop.
  ///
  /// - Throws: When the property has no such change.
  mutating func check(
    _ change: ValueChange,
    of key: KeyIndex,
    _ commands: inout CommandStateMachine,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) -> Loop? {
    guard hasReports else { return nil }
    commands.migrate(key, at: now)
    let value: Value
    switch change {
    case .set(let given): value = given
    case .toggle:
      guard let base = commands.base(of: key) else { return nil }
      value = try commands.registry.definition(of: key).property.toggled(from: base)
    case .step: return nil  // It adds to what is known and cannot alternate between two values.
    }
    return check(key, value, commands, receivedOn: topic(), at: now)
  }

  /// Judges a value that arrived as a message on `topic`; `nil` for one that is part of no loop.
  private mutating func check(
    _ key: KeyIndex,
    _ value: Value,
    _ commands: borrowing CommandStateMachine,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) -> Loop? {
    guard case .loop(let source, let isNew) = requested(key, value, at: now) else { return nil }
    let entry = commands.registry[key]
    let (command, state) = (topic(), entry.states[source].topic)
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
