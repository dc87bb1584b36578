// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

extension FeedbackLoopDetector {
  /// A change that is part of a loop.
  struct Slowing {
    /// Its quiet period.
    var wait: Duration
    /// The line for the log; `nil` for a loop that was found before.
    var entry: LogEntry?
  }

  /// Judges a change that arrived as a message on `topic`; `nil` for one that is not slowed.
  ///
  /// Actions are never: each is a command of its own.
  ///
  /// - Throws: When the property has no such change.
  mutating func check(
    _ change: ValueChange,
    of key: KeyIndex,
    _ commands: inout CommandStateMachine,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) -> Slowing? {
    guard hasReports, !commands.dispatcher.isAction(key) else { return nil }
    commands.migrate(key, at: now)
    let value: Value
    switch change {
    case .set(let given): value = given
    case .toggle:
      guard let base = commands.base(of: key) else { return nil }
      value = try commands.registry.definition(of: key).property.toggled(from: base)
    case .step: return nil  // It adds to what is known and cannot alternate between two values.
    }
    let verdict = requested(
      key,
      value,
      isUrgent: commands.dispatcher.isUrgent(value, of: key),
      quiet: commands.registry.definition(of: key).property.policy.delay,
      at: now
    )
    guard case .slow(let wait, let source, let isNew) = verdict else { return nil }
    guard isNew else { return Slowing(wait: wait) }
    let entry = commands.registry[key]
    let values = [commands.dispatcher.status(key).target, value].compactMap { $0?.bareText }
    let line = LogEntry(
      .warning,
      "Feedback loop slowed: commands or reports return as changes of two values in turn",
      [
        "key": entry.key, "commands": topic(), "publishes": entry.property.command.topic,
        "states": entry.states[source].topic,
        "values": values.map { Excerpt.of($0) }.joined(separator: " and "),
      ]
    )
    return Slowing(wait: wait, entry: line)
  }
}
