// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
package import Durability
package import JSON
package import LastOut
import Values

/// The command state machine and its journal: which change is accepted and recorded, and which
/// event of a command may be emitted.
package struct CommandPipeline: ~Copyable {
  package internal(set) var commands: CommandStateMachine
  /// `nil` without a journal.
  package internal(set) var durability: DurabilityGate?
  /// How many changes may wait for the disk.
  private let limit: Int
  /// See ``transcript``; in ``durability`` where there is a journal.
  private var ownTranscript: [CommandEvent]?

  init(registry: Registry, settings: CommandSettings) {
    commands = CommandStateMachine(registry: registry, settings: settings)
    limit = settings.pendingLimit
  }

  /// Makes accepted values durable from now on; see ``GatewayCore/openStore(_:path:)``.
  mutating func openStore(
    _ plan: JournalPlan,
    path: String,
    awaiting devices: AwaitedDevices,
    isShared: Bool,
    identifiers: CommandIdentifiers
  ) {
    commands.dispatcher.log.isJournalled = true
    durability = DurabilityGate(
      plan: plan,
      path: path,
      registry: commands.registry,
      awaiting: devices,
      settlesResumed: isShared,
      identifiers: identifiers,
      limit: limit
    )
  }

  /// Every event as it was decided, before it waits for the disk; kept only after a checker has set
  /// it to an empty list, and removed by it.
  package var transcript: [CommandEvent]? {
    get { durability == nil ? ownTranscript : durability?.transcript }
    set {
      ownTranscript = newValue
      durability?.transcript = newValue
    }
  }

  /// Whether someone records accepted changes.
  package var isRecorded: Bool {
    get { commands.recordsAppliedSteps }
    set {
      commands.recordsAppliedSteps = newValue
      if !newValue { commands.appliedSteps = [] }
    }
  }

  // MARK: - Changes

  /// Accepts a change, and records it.
  ///
  /// - Throws: Why it is rejected; nothing has changed then.
  mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    delay: Duration?,
    _ options: ChangeOptions,
    _ outbox: inout Outbox,
    at now: Moment
  ) throws(ValidationError) {
    commands.migrate(key, at: now)
    if durability != nil, let refusal = refusal(change, of: key, at: now) { throw refusal }
    let recorded = isRecorded ? try? commands.value(after: change, of: key) : nil
    try commands.change(change, of: key, at: now, delay: delay, options)
    guard let recorded else { return }
    recordAppliedSteps(&outbox)
    outbox.append(
      .record(
        RecordedChange(
          recorded,
          of: key,
          at: now,
          from: options.origin,
          skipsQuiet: options.skipsQuiet
        )
      )
    )
  }

  /// Why a change could not be kept through a crash.
  private func refusal(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment
  ) -> ValidationError? {
    guard !commands.dispatcher.isAction(key) else { return nil }
    let value: Value? = if case .set(let value) = change { value } else { nil }
    return durability?.refusal(
      of: key,
      isUrgent: value.map { commands.dispatcher.isUrgent($0, of: key) } ?? false,
      excluding: commands.rivals(of: key, value, isUrgent: false, isAccepted: false),
      at: now
    )
  }

  /// Several values of one device in the order in which they are accepted: a JSON object has no
  /// order, and an urgent member must not end the others of its message.
  ///
  /// - Throws: When there is no room for all of them, when a person holds one, or when one could
  ///   not be kept through a crash; of a group, when that is so of every member.
  mutating func ordered(
    _ values: [(key: KeyIndex, value: Value)],
    from origin: ChangeOrigin?,
    apartFrom elsewhere: DevicesElsewhere,
    at now: Moment
  ) throws(ValidationError) -> [(key: KeyIndex, value: Value)] {
    try commands.holds.check(values, from: origin, in: commands.dispatcher, at: now)
    for (key, value) in values where commands.isGroup(key) {
      try checkMembers(of: key, take: value, from: origin, apartFrom: elsewhere, at: now)
    }
    var urgent: [(key: KeyIndex, value: Value)] = []
    var others: [(key: KeyIndex, value: Value)] = []
    for (key, value) in values {
      if commands.dispatcher.isUrgent(value, of: key) {
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

  /// Checks that one member of a group at least takes a value.
  ///
  /// - Throws: Why the first one does not, if none does.
  private mutating func checkMembers(
    of group: KeyIndex,
    take value: Value,
    from origin: ChangeOrigin?,
    apartFrom elsewhere: DevicesElsewhere,
    at now: Moment
  ) throws(ValidationError) {
    var first: ValidationError?
    for member in commands.registry.groups.members(of: group) {
      if elsewhere.contains(commands.registry.device(of: member)) { return }
      do throws(ValidationError) {
        commands.migrate(member, at: now)
        let change = try commands.memberChange(.set(value), for: member)
        try commands.holds.check(change, of: member, from: origin, in: commands.dispatcher, at: now)
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

  /// Ends the quiet period of `key` now, or drops what waits for it, and records that; `false` when
  /// nothing waited.
  mutating func perform(
    _ operation: RecordedChange.Operation,
    on key: KeyIndex,
    source: String,
    _ outbox: inout Outbox,
    at now: Moment
  ) -> Bool {
    let isDone =
      switch operation {
      case .flush: commands.dispatcher.flush(key, at: now)
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
  private mutating func recordAppliedSteps(_ outbox: inout Outbox) {
    guard !commands.appliedSteps.isEmpty else { return }
    let steps = commands.appliedSteps
    commands.appliedSteps = []
    for step in steps {
      outbox.append(
        .record(
          RecordedChange(
            step.value,
            of: step.key,
            at: step.at,
            from: step.origin,
            skipsQuiet: step.skipsQuiet
          )
        )
      )
    }
  }

  // MARK: - Events

  /// Emits what was decided since the last call and does not wait for the disk.
  mutating func emit(to outbox: inout Outbox, at now: Moment) {
    recordAppliedSteps(&outbox)
    guard durability == nil else {
      durability?.advance(in: &commands, &outbox, at: now)
      return
    }
    ownTranscript?.append(contentsOf: commands.dispatcher.log.events)
    outbox.emitAll(of: &commands)
  }

  /// When a step has something to do; `nil` when nothing waits for time.
  func nextDeadline(after now: Moment) -> Moment? {
    Moment.earlier(commands.nextDeadline(after: now), durability?.nextDeadline)
  }

  // MARK: - Shutdown

  /// Whether everything that can be sent was sent and acknowledged.
  var isDrained: Bool {
    guard commands.dispatcher.isDrained else { return false }
    return
      !(durability?.withheld.contains { commands.dispatcher.sendQueue.isReachable($0) } ?? false)
  }

  /// The keys whose value was not acknowledged, and those of them that the journal keeps.
  func unsentKeys() -> (unsent: [String], kept: [String]) {
    var unsent: [String] = []
    var kept: [String] = []
    for key in commands.unsentKeys() {
      let name = commands.registry[key].key
      unsent.append(name)
      if durability?.rows.keeps(key) ?? false { kept.append(name) }
    }
    return (unsent, kept)
  }
}

extension RecordedChange {
  fileprivate init(
    _ value: Value,
    of key: KeyIndex,
    at moment: Moment,
    from origin: ChangeOrigin?,
    skipsQuiet: Bool
  ) {
    self.init(
      operation: .set(value),
      key: key,
      at: moment,
      source: origin == nil ? "mqtt" : origin?.source,
      skipsQuiet: skipsQuiet
    )
  }
}

/// What concerns commands alone: what devices report beside their states, and the journal's thread.
extension CommandPipeline {
  // MARK: - Devices

  /// The convention's own acknowledgement of a value.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    commands.advance(to: now)
    commands.acknowledged(key, wire, at: now)
  }

  /// A device replied to a message; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    commands.advance(to: now)
    commands.replied(key, to: message, problem: problem, at: now)
  }

  /// One availability source of a device reported.
  ///
  /// - Returns: Whether the device is online or offline now and was not before.
  package mutating func availability(
    ofDevice device: Int,
    source: Int,
    isOnline: Bool,
    at now: Moment
  ) -> Bool {
    commands.advance(to: now)
    let wasOnline = commands.dispatcher.sendQueue.isDeviceOnline(device)
    commands.dispatcher.availabilityChanged(
      of: device,
      source: source,
      isOnline: isOnline,
      at: now
    )
    return commands.dispatcher.sendQueue.isDeviceOnline(device) != wasOnline
  }

  /// A device that sleeps most of the time reported itself.
  package mutating func awoke(device: Int, at now: Moment) {
    commands.advance(to: now)
    commands.dispatcher.deviceAwoke(device, at: now)
  }

  // MARK: - The journal

  /// What became of ``Effect/write(_:)``.
  package mutating func storeFinished(_ result: JournalResult, at now: Moment) {
    let registry = commands.registry
    durability?.finished(result, in: registry, at: now)
  }

  /// The answer to ``Effect/readClock``.
  package mutating func clockRead(_ clock: JournalClock) { durability?.judge(clock) }

  /// The answer to ``Effect/closeStore``.
  package mutating func storeClosed() { durability?.closed() }
}
