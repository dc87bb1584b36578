// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import JSON
package import LastOut
import Routing

/// Changes from every surface.
extension GatewayCore {
  /// What a change carries beside its value.
  package struct Options: Sendable {
    package var origin: ChangeOrigin?
    /// How long the value may wait for an absent broker or device; `nil`: as the property says.
    package var ttl: Duration?
    /// Members that are sent with the command, see ``Device/options``.
    package var members: [JSONValue.Member]?
    /// Whether the quiet period is skipped.
    package var skipsQuiet = false

    package init(
      origin: ChangeOrigin? = nil,
      ttl: Duration? = nil,
      members: [JSONValue.Member]? = nil,
      skipsQuiet: Bool = false
    ) {
      self.origin = origin
      self.ttl = ttl
      self.members = members
      self.skipsQuiet = skipsQuiet
    }
  }

  /// Accepts a change, after everything that is due has left.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    at now: Moment,
    _ options: Options = Options()
  ) throws(ValidationError) {
    advanceIfDue(to: now)
    if durability != nil, let refusal = durabilityRefusal(change, of: key, at: now) {
      throw refusal
    }
    let recorded = isRecorded ? try? commands.value(after: change, of: key) : nil
    try commands.change(
      change,
      of: key,
      at: now,
      origin: options.origin,
      ttl: options.ttl,
      options: options.members,
      skipsQuiet: options.skipsQuiet
    )
    if let recorded {
      record(recorded, of: key, at: now, origin: options.origin, skipsQuiet: options.skipsQuiet)
    }
  }

  /// Accepts a change that arrived as a message, unless it is part of a feedback loop: a bridge that
  /// turns what the device reports back into commands.
  ///
  /// `topic` is the command topic, as the log names it.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: Options = Options()
  ) throws(ValidationError) {
    try checkFeedback(change, of: key, receivedOn: topic(), at: now)
    try self.change(change, of: key, at: now, options)
  }

  /// Accepts several values of one device at one instant, all of them or none.
  ///
  /// `topic` is the topic they were received on; it is checked for feedback loops.
  ///
  /// - Throws: Why they are rejected; nothing has changed then.
  package mutating func change(
    _ values: [(key: KeyIndex, value: Value)],
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: Options
  ) throws(ValidationError) {
    advanceIfDue(to: now)  // What is due makes room.
    // A JSON object has no order: an urgent member must not end the others of its message.
    let urgent = values.filter { commands.isUrgent($0.value, of: $0.key) }
    let ordered = urgent + values.filter { !commands.isUrgent($0.value, of: $0.key) }
    try commands.checkRoom(for: ordered)
    for (key, value) in ordered {
      try checkFeedback(.set(value), of: key, receivedOn: topic(), at: now)
    }
    for (key, value) in ordered { try change(.set(value), of: key, at: now, options) }
  }

  /// Reports that a change was rejected before it reached a key's queue.
  ///
  /// - Returns: The number of the event.
  @discardableResult
  package mutating func reject(
    _ key: KeyIndex,
    reason: String,
    at now: Moment,
    origin: ChangeOrigin?
  ) -> UInt64 {
    commands.reject(key, reason: reason, at: now, origin: origin)
  }

  /// A number for something that is rejected without concerning a known key.
  package mutating func nextNumber() -> UInt64 { commands.nextNumber() }

  /// Ends the quiet period of `key` now; `false` when nothing was pending.
  @discardableResult
  package mutating func flush(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    advanceIfDue(to: now)
    guard commands.flush(key, at: now) else { return false }
    if isRecorded {
      notices.append(.record(RecordedChange(operation: .flush, key: key, at: now, source: source)))
    }
    return true
  }

  /// Drops what waits for `key`; `false` when nothing did.
  @discardableResult
  package mutating func cancel(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    advanceIfDue(to: now)
    guard commands.cancel(key, at: now) else { return false }
    if isRecorded {
      notices.append(
        .record(RecordedChange(operation: .cancel, key: key, at: now, source: source))
      )
    }
    return true
  }

  /// A timer that is due at an instant fires before anything that arrives at that instant.
  package mutating func advanceIfDue(to now: Moment) {
    guard let deadline = nextDeadline(after: now), deadline <= now else { return }
    advance(to: now)
  }

  /// Why a change could not be kept through a crash.
  private func durabilityRefusal(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    at now: Moment
  ) -> ValidationError? {
    guard !commands.isAction(key) else { return nil }
    let isUrgent =
      if case .set(let value) = change { commands.isUrgent(value, of: key) } else { false }
    return durability?.refusal(
      of: key,
      isUrgent: isUrgent,
      excluding: commands.keysEnded(by: key, isUrgent: false),
      at: now
    )
  }

  // MARK: - Feedback loops

  private mutating func checkFeedback(
    _ change: CommandStateMachine.Change,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) {
    guard loops.hasReports else { return }
    let value: Value
    switch change {
    case .set(let given): value = given
    case .toggle:
      guard let base = commands.base(of: key) else { return }
      value = try commands.registry[key].property.toggled(from: base)
    case .step: return  // A step adds to what is known and cannot alternate between two values.
    }
    guard case .loop(let source, let isNew) = loops.requested(key, value, at: now) else { return }
    let entry = commands.registry[key]
    let (command, state) = (topic(), entry.property.states[source].topic)
    let values = [commands.status(key).target, value].compactMap { $0?.bareText }
    if isNew {
      notices.append(
        .log(
          LogEntry(
            .warning,
            "Echo loop stopped: what the state topic reports comes back on the command topic",
            [
              "key": entry.key, "commands": command, "states": state,
              "values": values.map { Excerpt.of($0) }.joined(separator: " and "),
            ]
          )
        )
      )
    }
    throw .echoLoop(commands: command, states: state, values: values)
  }

  // MARK: - Recording

  private mutating func record(
    _ value: Value,
    of key: KeyIndex,
    at now: Moment,
    origin: ChangeOrigin?,
    skipsQuiet: Bool
  ) {
    recordAppliedSteps()
    notices.append(
      .record(
        RecordedChange(
          operation: .set(value),
          key: key,
          at: now,
          source: origin == nil ? "mqtt" : origin?.source,
          skipsQuiet: skipsQuiet
        )
      )
    )
  }

  /// Records the steps whose state has arrived since.
  mutating func recordAppliedSteps() {
    guard !commands.appliedSteps.isEmpty else { return }
    var steps: [AppliedStep] = []
    swap(&steps, &commands.appliedSteps)
    for step in steps {
      record(
        step.value,
        of: step.key,
        at: step.at,
        origin: step.origin,
        skipsQuiet: step.skipsQuiet
      )
    }
  }
}
