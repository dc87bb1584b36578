// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// What requesters ask for: changes, cancel, shutdown.
extension CommandStateMachine {
  // MARK: - Changes

  /// Accepts a change.
  ///
  /// A step or toggle without a known state to count from waits for that state, if it was
  /// requested.
  ///
  /// `delay` is the quiet period of a value in place of its policy's.
  ///
  /// - Throws: Why the change is rejected; nothing else has changed then.
  package mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    _ options: consuming ChangeOptions = ChangeOptions()
  ) throws(ValidationError) {
    migrate(key, at: now)
    log.statistics.changes += 1
    do throws(ValidationError) {
      guard !isClosing else { throw .shuttingDown }
      let hasHold = facts[key].hasHold
      if hasHold {
        try holds.check(change, of: key, from: options.origin, in: self, at: now)
      }
      if case .set(let value) = change {
        try accept(value, of: key, delay: delay, options, at: now)
      } else if let value = try value(after: change, of: key) {
        try accept(value, of: key, delay: delay, options, at: now)
      } else {
        try waitForState(change, of: key, options, at: now)
      }
      if hasHold, let rule = registry.definition(of: key).property.hold {
        holds.record(options.origin?.source, of: key, rule, at: now)
      }
    } catch {
      log.statistics.rejected += 1
      throw error
    }
  }

  /// The absolute value of a change; `nil` when there is nothing to count from.
  ///
  /// - Throws: When the property has no such change.
  package func value(
    after change: ValueChange,
    of key: KeyIndex
  ) throws(ValidationError) -> Value? {
    if case .set(let value) = change { return value }
    return try change.value(from: base(of: key), of: registry.definition(of: key).property)
  }

  /// What a step of `key` counts from: what the device will have once its commands are done.
  package func base(of key: KeyIndex) -> Value? {
    if isAction(key) { return nil }
    // A command of its own agrees with what others imply, or is newer.
    if facts[key].hasImplications, !hasCommand(key),
      let implied = implication(of: key)
    {
      return implied
    }
    return expectedValue(of: key)
  }

  // Inlined: a change then copies its value once. What is rare is not, so that this stays small.
  @inline(__always)
  private mutating func accept(
    _ value: Value,
    of key: KeyIndex,
    delay: Duration? = nil,
    _ options: ChangeOptions,
    at now: Moment
  ) throws(ValidationError) {
    let isUrgent = isUrgent(value, of: key)
    guard isUrgent || waitingCount < settings.pendingLimit || hasValue(key) else {
      throw .tooManyPending(limit: settings.pendingLimit)
    }
    let isAction = isAction(key)
    if isAction, !isUrgent { try checkRoom(forAction: key) }
    let change = PendingChange(
      value: value,
      number: log.nextNumber(),
      acceptedAt: now,
      expiresAt: options.ttl.map { now.advanced(by: $0) }
        ?? facts[key].expiry(from: now),
      origin: options.origin,
      members: options.members,
      rides: options.rides,
      flow: sendQueue.lanes.flow(of: options.origin?.source, at: now)
    )
    log.emitAccepted(
      change,
      isUrgent: isUrgent,
      for: key,
      facts[key],
      at: now
    )
    guard !isUrgent else { return override(key, with: change, at: now) }
    guard !isAction else { return press(key, with: change, at: now) }
    if !waitingSteps.isEmpty {
      waitingSteps.end(
        key,
        as: .superseded,
        reason: Delivery.newerValue,
        in: &log,
        at: now
      )
    }
    let leads = options.quiet != .slowed
    enqueue(consume change, for: key, at: now, delay: delay, leads: leads)
    if facts[key].endsOthers {
      endOthers(by: value, of: key, rides: options.rides, at: now)
    }
    setTarget(value, of: key)
    settleReady(at: now)
    if options.skipsQuiet { flush(key, at: now) }
  }

  /// Lets an action wait behind those of its key: none replaces another.
  @inline(never)
  private mutating func press(_ key: KeyIndex, with change: PendingChange, at now: Moment) {
    endExcluded(by: key, at: now)
    makeReady(Command(change: change), for: key, at: now)
  }

  /// Sends an urgent value first in its lane, and ends what it overrides; an urgent action takes
  /// the place of those that wait.
  @inline(never)
  private mutating func override(_ key: KeyIndex, with change: PendingChange, at now: Moment) {
    let phase = isAction(key) ? Phase.superseded : .cancelled
    endWaiting(key, as: phase, reason: Self.urgent, at: now)
    queue.restartInterval(of: key, at: now)
    abandon(key, as: .cancelled, reason: Self.urgent, at: now)
    endRelated(to: key, isUrgent: true, at: now)
    endContradicting(change.value, of: key, rides: change.rides, at: now)
    setTarget(change.value, of: key)
    makeReady(Command(change: change, isUrgent: true), for: key, at: now)
  }

  // MARK: - Room

  /// Everything that counts against ``CommandSettings/pendingLimit``.
  @inline(__always)
  private var waitingCount: Int { pendingCount + waitingSteps.keyCount }

  /// Whether another value of `key` may wait; a newer value of a key that has one always may.
  private func hasRoom(for key: KeyIndex) -> Bool {
    waitingCount < settings.pendingLimit || hasValue(key)
  }

  private func hasValue(_ key: KeyIndex) -> Bool { waiting(for: key).hasValue }

  /// Rejects values of several keys if one of them would find no room, accepted in this order at
  /// one instant.
  ///
  /// What is not rejected here finds room in ``change(_:of:at:_:)``. Takes constant time where
  /// there is room for one more of each.
  ///
  /// - Throws: `noRoomForAll`.
  package func checkRoom(
    for values: [(key: KeyIndex, value: Value)]
  ) throws(ValidationError) {
    for (key, value) in values where isAction(key) {
      if !isUrgent(value, of: key) { try checkRoom(forAction: key) }
    }
    guard waitingCount + values.count > settings.pendingLimit else { return }
    var plan = AdmissionPlan(count: waitingCount, limit: settings.pendingLimit)
    for (key, value) in values {
      let isUrgent = isUrgent(value, of: key)
      plan.accept(
        key,
        isUrgent: isUrgent,
        isAction: isAction(key),
        relations[key]
      ) { waiting(for: $0) }
    }
    if let refusal = plan.refusal { throw refusal }
  }

  private func checkRoom(forAction key: KeyIndex) throws(ValidationError) {
    guard sendQueue.hasRoomForAction(key) else {
      throw .tooManyActions(registry[key].key, limit: WaitingActions.limit)
    }
  }

  private func waiting(for key: KeyIndex) -> AdmissionPlan.Waiting {
    AdmissionPlan.Waiting(
      quiet: queue.isPending(key),
      ready: sendQueue[key] != nil,
      steps: waitingSteps.contains(key)
    )
  }

  // MARK: - The end of what waits

  /// Ends what waits for `key`; `false` when nothing did.
  @discardableResult
  package mutating func cancel(_ key: KeyIndex, at now: Moment) -> Bool {
    guard endWaiting(key, as: .cancelled, reason: nil, at: now) else { return false }
    refreshTarget(key)
    return true
  }

  /// Begins the shutdown: ends every quiet period, and lets lanes hold nothing back.
  ///
  /// Steps that wait for a state are rejected, and so are later changes.
  package mutating func close(at now: Moment) {
    isClosing = true
    for key in waitingSteps.keys { rejectSteps(of: key, as: .shuttingDown, at: now) }
    for key in queue.pendingKeys() { flush(key, at: now) }
  }

  /// Ends everything of `key` that has not been sent; `false` when there was nothing.
  @discardableResult
  mutating func endWaiting(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    exceptUrgent: Bool = false,
    at now: Moment
  ) -> Bool {
    let steps = waitingSteps.end(key, as: phase, reason: reason, in: &log, at: now)
    let hasEnded = endQueued(
      key,
      as: phase,
      reason: reason,
      exceptUrgent: exceptUrgent,
      at: now
    )
    return hasEnded || steps > 0
  }
}

/// Steps that wait for the device's state.
extension CommandStateMachine {
  @inline(never)
  private mutating func waitForState(
    _ change: ValueChange,
    of key: KeyIndex,
    _ options: ChangeOptions,
    at now: Moment
  ) throws(ValidationError) {
    try change.check(registry.definition(of: key).property)
    guard facts[key].canAsk, sendQueue.isConnected else { throw .noBase }
    try waitingSteps.checkLimit(of: key)
    guard waitingSteps.contains(key) || hasRoom(for: key) else {
      throw .tooManyPending(limit: settings.pendingLimit)
    }
    // It may have been asked before, and have missed that.
    if !waitingSteps.contains(key) { sendQueue.wantState(of: key, isNeeded: true) }
    waitingSteps.append(
      WaitingSteps.Step(
        change: change,
        number: log.nextNumber(),
        receivedAt: now,
        options: options
      ),
      for: key
    )
  }

  /// Accepts the steps that waited for the state, which is known now.
  mutating func applySteps(of key: KeyIndex, at now: Moment) {
    guard waitingSteps.contains(key) else { return }
    for step in waitingSteps.removeAll(of: key) {
      do throws(ValidationError) {
        guard let value = try value(after: step.change, of: key) else { throw .noBase }
        try accept(value, of: key, step.options, at: now)
        if recordsAppliedSteps { appliedSteps.append(AppliedStep(step, value, of: key, at: now)) }
      } catch {
        log.statistics.rejected += 1
        step.end(as: .rejected, reason: error.description, of: key, in: &log, at: now)
      }
    }
  }

  /// Rejects steps whose state will not arrive.
  mutating func rejectSteps(of key: KeyIndex, as error: ValidationError, at now: Moment) {
    let count = waitingSteps.end(
      key,
      as: .rejected,
      reason: error.description,
      in: &log,
      at: now
    )
    log.statistics.rejected += UInt64(count)
  }
}

/// The rules between keys: which commands of other keys a value ends.
extension CommandStateMachine {
  /// Why a command ended that an urgent value overrides.
  static var urgent: String { "urgent" }

  /// The other keys of which nothing older may follow `value` of `key`: it ends their commands, or
  /// their urgent values end its own.
  ///
  /// `nil` stands for a value that is not known, which ends what all values end. Of a value that
  /// `isAccepted` the commands that it contradicts have ended.
  package func rivals(
    of key: KeyIndex,
    _ value: Value?,
    isUrgent: Bool,
    isAccepted: Bool
  ) -> [Rival] {
    let rivals =
      isUrgent ? relations[key].urgentRivals : relations[key].rivals
    guard facts[key].hasImplications, let value else { return rivals }
    return rivals + contradicted(by: value, of: key, isAccepted: isAccepted)
  }

  /// Ends the commands of other keys that a new value of `key` ends; of `keys` alone, if given.
  mutating func endRelated(
    to key: KeyIndex,
    among keys: [KeyIndex]? = nil,
    isUrgent: Bool,
    at now: Moment
  ) {
    if isUrgent {
      for other in relations[key].ends where keys?.contains(other) ?? true {
        end(other, as: .cancelled, reason: Self.urgent, at: now)
      }
    }
    endExcluded(by: key, among: keys, at: now)
  }

  /// Ends the commands of other keys that a value ends that is not urgent.
  @inline(never)
  mutating func endOthers(by value: Value, of key: KeyIndex, rides: Bool, at now: Moment) {
    endExcluded(by: key, at: now)
    endContradicting(value, of: key, rides: rides, at: now)
  }

  /// Ends the commands of the keys that `key` excludes: the newest value stays.
  mutating func endExcluded(by key: KeyIndex, among keys: [KeyIndex]? = nil, at now: Moment) {
    guard facts[key].hasExcluded else { return }
    let reason = "replaced by \(registry.definition(of: key).property.id)"
    for other in relations[key].excluded where keys?.contains(other) ?? true {
      end(other, as: .superseded, reason: reason, at: now)
    }
  }

  /// Someone set a value at the device: if it is urgent, the commands that it ends are over.
  mutating func endOthersByHand(_ value: Value, of key: KeyIndex, at now: Moment) {
    endContradictingByHand(value, of: key, at: now)
    guard isUrgent(value, of: key) else { return }
    for other in relations[key].ends {
      endRepetition(of: other, reason: Delivery.changedByHand, at: now)
      abandon(other, as: .superseded, reason: Delivery.changedByHand, at: now)
    }
  }

  /// Ends everything of `key`, in flight or not.
  mutating func end(_ key: KeyIndex, as phase: Phase, reason: String, at now: Moment) {
    endWaiting(key, as: phase, reason: reason, at: now)
    abandon(key, as: phase, reason: reason, at: now)
  }
}

/// Requests for the states of devices.
extension CommandStateMachine {
  /// The next message that asks a device for its state; `nil` when none may be sent now.
  ///
  /// Call it while the client can publish, after ``nextPublish(at:)`` has
  /// returned `nil`.
  package mutating func nextRequest(at now: Moment) -> StateRequestMessage? {
    isClosing ? nil : sendQueue.nextRequest(at: now)
  }

  /// Asks for the states of these keys, whose definitions a reload has changed.
  package mutating func requestStates(of keys: some Sequence<KeyIndex>) {
    for key in keys { sendQueue.wantState(of: key) }
  }
}

/// Whether several values would all find room, if they were accepted one after the other.
///
/// It repeats what accepting does to the number of waiting values: a newer value replaces an older
/// one of its key, an urgent value ends those of other keys, and of keys that exclude each other
/// only the newer keeps its value.
struct AdmissionPlan {
  /// What waits of one key.
  struct Waiting {
    /// A value in its quiet period.
    var quiet = false
    /// A value past its quiet period, or about to be: a leading value is, at once.
    var ready = false
    /// Steps that wait for the device's state.
    var steps = false

    var count: Int { (quiet ? 1 : 0) + (ready ? 1 : 0) + (steps ? 1 : 0) }
    var hasValue: Bool { quiet || ready }
  }

  private let limit: Int
  private let countBefore: Int
  private var count: Int
  /// The greatest value of ``count``.
  private var peak = 0
  private var isRefused = false
  /// What would wait of the keys that the plan has touched.
  private var waiting: [KeyIndex: Waiting] = [:]

  /// - Parameters:
  ///   - count: How many values and steps wait.
  ///   - limit: How many may wait.
  init(count: Int, limit: Int) {
    self.limit = limit
    self.count = count
    countBefore = count
  }

  /// Why the values are rejected; `nil` when there is room for all.
  var refusal: ValidationError? {
    guard isRefused else { return nil }
    return .noRoomForAll(
      needed: peak - countBefore,
      free: max(limit - countBefore, 0),
      limit: limit
    )
  }

  /// Accepts a value of `key` next; `known` says what waits of a key by now.
  mutating func accept(
    _ key: KeyIndex,
    isUrgent: Bool,
    isAction: Bool = false,
    _ relations: Relations,
    _ known: (KeyIndex) -> Waiting
  ) {
    let before = waiting[key] ?? known(key)
    if isUrgent {
      for other in relations.ends { end(other, known) }
    } else if count >= limit, !before.hasValue {
      isRefused = true
    }
    let after = Waiting(quiet: !isUrgent && !isAction && before.ready, ready: true)
    count += after.count - before.count
    peak = max(peak, count)
    waiting[key] = after
    for other in relations.excluded { end(other, known) }
  }

  private mutating func end(_ key: KeyIndex, _ known: (KeyIndex) -> Waiting) {
    count -= (waiting[key] ?? known(key)).count
    waiting[key] = Waiting()
  }
}
