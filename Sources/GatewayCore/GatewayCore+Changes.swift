// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
package import LastOut
package import Values

/// Changes from every surface.
extension GatewayCore {
  /// Accepts a change, after everything that is due has left.
  ///
  /// `delay` is the quiet period of a value in place of its policy's.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    _ options: ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    commands.advance(to: now)
    if commands.isGroup(key) {
      return try changeMembers(of: key, change, at: now, delay: delay, options)
    }
    try accept(change, of: key, at: now, delay: delay, options)
  }

  /// Accepts a change that arrived as a message; it waits longer if it is part of a feedback loop:
  /// a bridge that turns what the device reports back into commands.
  ///
  /// `topic` is the command topic, as the log names it.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment,
    _ options: ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    let wait = try slowing(change, of: key, receivedOn: topic(), at: now)
    try self.change(change, of: key, at: now, delay: wait, wait == nil ? options : options.slowed)
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
    _ options: ChangeOptions
  ) throws(ValidationError) {
    commands.advance(to: now)  // What is due makes room.
    let ordered = try ordered(values, options, at: now)
    var waits: [KeyIndex: Duration] = [:]
    for (key, value) in ordered {
      waits[key] = try slowing(.set(value), of: key, receivedOn: topic(), at: now)
    }
    try accept(ordered, waits, at: now, options)
  }

  /// Accepts several values of one device at one instant, all of them or none.
  ///
  /// - Throws: Why they are rejected; nothing has changed then.
  package mutating func change(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    commands.advance(to: now)  // What is due makes room.
    let ordered = try ordered(values, options, at: now)
    try accept(ordered, [:], at: now, options)
  }

  /// The values in the order in which they are accepted: a JSON object has no order, and an urgent
  /// member must not end the others of its message.
  ///
  /// - Throws: When there is no room for all of them, when a person holds one, or when one could
  ///   not be kept through a crash; of a group, when that is so of every member.
  private mutating func ordered(
    _ values: [(key: KeyIndex, value: Value)],
    _ options: ChangeOptions,
    at now: Moment
  ) throws(ValidationError) -> [(key: KeyIndex, value: Value)] {
    try commands.holds.check(values, from: options.origin, in: commands, at: now)
    for (key, value) in values where commands.isGroup(key) {
      try checkMembers(of: key, take: value, from: options.origin, at: now)
    }
    var urgent: [(key: KeyIndex, value: Value)] = []
    var others: [(key: KeyIndex, value: Value)] = []
    for (key, value) in values {
      if commands.isUrgent(value, of: key) {
        urgent.append((key, value))
      } else {
        others.append((key, value))
      }
    }
    let ordered = urgent + others
    try commands.checkRoom(for: ordered)
    guard durability != nil else { return ordered }
    for (key, value) in ordered {
      commands.migrate(key, at: now)
      if let refusal = refusal(.set(value), of: key, at: now) { throw refusal }
    }
    return ordered
  }

  /// Accepts values that may be accepted; `waits` are the quiet periods of those that are slowed.
  private mutating func accept(
    _ values: [(key: KeyIndex, value: Value)],
    _ waits: [KeyIndex: Duration],
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    let longest = options.quiet == .joint ? longestDelay(of: values.map(\.key)) : nil
    for (place, rides) in commands.stating(values) {
      let (key, value) = values[place]
      var options = options
      options.rides = rides
      let delay = longest.flatMap {
        registry.definition(of: key).property.policy.delay < $0 ? $0 : nil
      }
      if let wait = waits[key] {
        try change(.set(value), of: key, at: now, delay: max(wait, delay ?? wait), options.slowed)
      } else {
        try change(.set(value), of: key, at: now, delay: delay, options.withQuiet)
      }
    }
    skipQuiet(of: values, except: waits, at: now, options)
  }

  /// The longest quiet period of these keys, without momentary commands.
  private func longestDelay(of keys: [KeyIndex]) -> Duration {
    keys.map { key in
      let property = registry.definition(of: key).property
      return property.isAction ? .zero : property.policy.delay
    }.max() ?? .zero
  }

  /// Accepts values of several devices at one instant, each for itself.
  ///
  /// - Returns: For each value why it was rejected, or `nil`.
  package mutating func changeEach(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) -> [ValidationError?] {
    commands.advance(to: now)
    let carriers = carriers(of: values, at: now)
    var each = options.withQuiet
    var results: [ValidationError?] = Array(repeating: nil, count: values.count)
    for (place, rides) in commands.stating(values) {
      each.rides = rides
      each.origin =
        carriers[place].map { ChangeOrigin(of: options.origin, id: options.origin?.id, group: $0) }
        ?? options.origin
      do throws(ValidationError) {
        try change(.set(values[place].value), of: values[place].key, at: now, each)
      } catch {
        results[place] = error
      }
    }
    skipQuiet(of: values, at: now, options)
    return results
  }

  /// Ends the quiet periods of several values if that is asked for, once all are accepted: one
  /// message may carry several of a device.
  ///
  /// Those of a feedback loop wait all the same.
  private mutating func skipQuiet(
    of values: [(key: KeyIndex, value: Value)],
    except slowed: [KeyIndex: Duration] = [:],
    at now: Moment,
    _ options: ChangeOptions
  ) {
    guard options.skipsQuiet else { return }
    for (key, _) in values where slowed[key] == nil {
      flush(key, at: now, source: options.origin?.source ?? "mqtt")
    }
  }

  /// Accepts a change, and records it.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  mutating func accept(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    delay: Duration?,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    commands.migrate(key, at: now)
    if durability != nil, let refusal = refusal(change, of: key, at: now) { throw refusal }
    let recorded = isRecorded ? try? commands.value(after: change, of: key) : nil
    try commands.change(change, of: key, at: now, delay: delay, options)
    if !restorations.isIdle { restorations.forget(registry.device(of: key)) }
    guard let recorded else { return }
    recordAppliedSteps()
    record(recorded, of: key, at: now, from: options.origin, skipsQuiet: options.skipsQuiet)
  }

  /// Why a change could not be kept through a crash.
  private func refusal(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment
  ) -> ValidationError? {
    guard !commands.isAction(key) else { return nil }
    let value: Value? = if case .set(let value) = change { value } else { nil }
    return durability?.refusal(
      of: key,
      isUrgent: value.map { commands.isUrgent($0, of: key) } ?? false,
      excluding: commands.rivals(of: key, value, isUrgent: false, isAccepted: false),
      at: now
    )
  }

  /// Checks that one member of a group at least takes a value.
  ///
  /// - Throws: Why the first one does not, if none does.
  private mutating func checkMembers(
    of group: KeyIndex,
    take value: Value,
    from origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    var first: ValidationError?
    for member in commands.registry.groups.members(of: group) {
      if !elsewhere.executesParts(of: commands.registry.device(of: member)) { return }
      do throws(ValidationError) {
        commands.migrate(member, at: now)
        let change = try commands.memberChange(.set(value), for: member)
        try commands.holds.check(change, of: member, from: origin, in: commands, at: now)
        if let refusal = refusal(change, of: member, at: now) { throw refusal }
        return
      } catch {
        first = first ?? error
      }
    }
    if let first {
      throw .inProperty(commands.registry.definition(of: group).property.id, first)
    }
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
    commands.log.reject(key, reason: reason, at: now, origin: origin)
  }

  /// A number for something that is rejected without concerning a known key.
  package mutating func nextNumber() -> UInt64 { commands.log.nextNumber() }

  /// Ends the quiet period of `key` now; `false` when nothing was pending here.
  ///
  /// For a group, `isHereOnly` leaves out the members whose devices other gateways drive.
  @discardableResult
  package mutating func flush(
    _ key: KeyIndex,
    at now: Moment,
    source: String,
    isHereOnly: Bool = false
  ) -> Bool {
    perform(.flush, on: key, at: now, source: source, isHereOnly)
  }

  /// Drops what waits for `key`; `false` when nothing did here.
  ///
  /// For a group, `isHereOnly` leaves out the members whose devices other gateways drive.
  @discardableResult
  package mutating func cancel(
    _ key: KeyIndex,
    at now: Moment,
    source: String,
    isHereOnly: Bool = false
  ) -> Bool {
    perform(.cancel, on: key, at: now, source: source, isHereOnly)
  }

  /// Ends the wait of `key`, or of each member of a group; `false` when nothing waited here.
  private mutating func perform(
    _ operation: RecordedChange.Operation,
    on key: KeyIndex,
    at now: Moment,
    source: String,
    _ isHereOnly: Bool
  ) -> Bool {
    commands.advance(to: now)
    guard commands.isGroup(key) else {
      return performAlone(operation, on: key, at: now, source: source)
    }
    var isAny = false
    for member in registry.groups.members(of: key) {
      if performAlone(operation, on: member, at: now, source: source) {
        isAny = true
      } else if !isHereOnly, elsewhere.contains(registry.device(of: member)) {
        outbox.append(
          .endElsewhere(RecordedChange(operation: operation, key: member, at: now, source: source))
        )
      }
    }
    return isAny
  }

  /// Ends the quiet period of `key` now, or drops what waits for it, and records that; `false` when
  /// nothing waited.
  private mutating func performAlone(
    _ operation: RecordedChange.Operation,
    on key: KeyIndex,
    at now: Moment,
    source: String
  ) -> Bool {
    let isDone =
      switch operation {
      case .flush: commands.flush(key, at: now)
      case .cancel: commands.cancel(key, at: now)
      case .set: preconditionFailure("A value is accepted as a change.")
      }
    guard isDone else { return false }
    if isRecorded {
      outbox.append(
        .record(RecordedChange(operation: operation, key: key, at: now, source: source))
      )
    }
    return true
  }

  /// Records the steps whose state has arrived since.
  mutating func recordAppliedSteps() {
    guard !commands.appliedSteps.isEmpty else { return }
    for step in exchange(&commands.appliedSteps, with: []) {
      record(step.value, of: step.key, at: step.at, from: step.origin, skipsQuiet: step.skipsQuiet)
    }
  }

  private mutating func record(
    _ value: Value,
    of key: KeyIndex,
    at moment: Moment,
    from origin: ChangeOrigin?,
    skipsQuiet: Bool
  ) {
    let change = RecordedChange(
      operation: .set(value),
      key: key,
      at: moment,
      source: origin == nil ? "mqtt" : origin?.source,
      skipsQuiet: skipsQuiet
    )
    outbox.append(.record(change))
  }

  // MARK: - Feedback loops

  /// How long a change that arrived as a message waits if it is part of a loop.
  ///
  /// - Throws: When the property has no such change.
  private mutating func slowing(
    _ change: ValueChange,
    of key: KeyIndex,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) -> Duration? {
    let slowing = try loops.check(change, of: key, &commands, receivedOn: topic(), at: now)
    outbox.log(slowing?.entry)
    return slowing?.wait
  }
}
