// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut

/// What comes in: changes, flush and cancel.
extension CommandStateMachine {
  /// What a user asks of one key.
  package enum Change: Hashable, Sendable {
    /// A value of the property's type, already validated.
    case set(Value)
    case step(Double)
    case toggle
  }

  /// What a change brings along.
  struct Terms {
    var origin: ChangeOrigin?
    /// How long it may wait for an absent broker or device; `nil`: as the property says.
    var ttl: Duration?
    var options: [JSONValue.Member]?
    var skipsQuiet = false
  }

  /// Takes a change, or refuses it; refused changes leave everything as it was.
  ///
  /// `skipsQuiet` flushes the key after the change. `ttl` is how long the value may wait for an
  /// absent broker or device. `options` are members that ride with the command (see
  /// ``Device/options``).
  ///
  /// - Throws: Why it is refused: the kind has no such change, nothing to count from, no room, or
  ///   the way out has begun.
  package mutating func change(
    _ change: Change,
    of key: KeyIndex,
    at now: Moment,
    origin: ChangeOrigin? = nil,
    ttl: Duration? = nil,
    options: [JSONValue.Member]? = nil,
    skipsQuiet: Bool = false
  ) throws(ValidationError) {
    statistics.changes += 1
    let terms = Terms(origin: origin, ttl: ttl, options: options, skipsQuiet: skipsQuiet)
    do throws(ValidationError) {
      guard !isClosing else { throw .shuttingDown }
      let value: Value
      if case .set(let given) = change {
        value = given
      } else if let found = try self.value(after: change, of: key) {
        value = found
      } else {
        return try hold(change, of: key, terms, at: now)
      }
      try take(value, of: key, terms, at: now)
    } catch {
      statistics.rejected += 1
      throw error
    }
  }

  /// The absolute value a change asks for; `nil` when there is nothing to count from.
  ///
  /// - Throws: When the kind has no such change.
  package func value(after change: Change, of key: KeyIndex) throws(ValidationError) -> Value? {
    switch change {
    case .set(let value): return value
    case .step(let amount):
      guard let base = base(of: key) else { return nil }
      return try registry.properties[Int(key.rawValue)].property.stepped(from: base, by: amount)
    case .toggle:
      guard let base = base(of: key) else { return nil }
      return try registry.properties[Int(key.rawValue)].property.toggled(from: base)
    }
  }

  // Inlined, with the next: a change of a known key then copies its value once.
  @inline(__always)
  private mutating func take(
    _ value: Value,
    of key: KeyIndex,
    _ terms: Terms,
    at now: Moment
  ) throws(ValidationError) {
    let place = Int(key.rawValue)
    let isUrgent =
      facts[place].hasUrgent && registry.properties[place].property.urgent.contains(value)
    guard isUrgent || waitingCount < settings.pendingLimit || hasValue(key) else {
      throw .tooManyPending(limit: settings.pendingLimit)
    }
    changeNumber += 1
    let expiresAt =
      if let ttl = terms.ttl { now.advanced(by: ttl) } else { facts[place].expiry(from: now) }
    let pending = PendingChange(
      value: value,
      number: changeNumber,
      acceptedAt: now,
      expiresAt: expiresAt,
      origin: terms.origin,
      options: terms.options
    )
    guard !isUrgent else { return override(key, with: pending, at: now) }
    enqueue(consume pending, of: value, for: key, at: now)
    if terms.skipsQuiet { flush(key, at: now) }
  }

  /// A number for something that is refused without being a change.
  package mutating func nextNumber() -> UInt64 {
    changeNumber += 1
    return changeNumber
  }

  /// Tells that a change was refused before it was one, because its value could not be read.
  ///
  /// - Returns: The number of the event.
  @discardableResult
  package mutating func reject(
    _ key: KeyIndex,
    reason: String,
    at now: Moment,
    origin: ChangeOrigin? = nil
  ) -> UInt64 {
    let number = nextNumber()
    events.append(
      CommandEvent(
        key: key,
        phase: .rejected,
        value: nil,
        collapsed: 0,
        number: number,
        acceptedAt: now,
        at: now,
        attempt: 1,
        reason: reason,
        origin: origin,
        isFinal: true
      )
    )
    return number
  }

  /// What a step counts from: the pending value, the target on its way or unconfirmed, the last one
  /// sent where no report came since, the actual value.
  package func base(of key: KeyIndex) -> Value? {
    let place = Int(key.rawValue)
    guard !facts[place].isAction else { return nil }
    if let pending = core.pending(key) { return pending.value.value }
    return states[place].ready?.change.value ?? standingValue(place) ?? states[place].arriving
      ?? states[place].lastSent ?? states[place].actual
  }

  @inline(__always)
  private mutating func enqueue(
    _ pending: consuming PendingChange,
    of value: Value,
    for key: KeyIndex,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    tell(.accepted, of: pending, for: key, at: now)
    if !heldSteps.isEmpty { dropHeld(key, as: .superseded, reason: Self.newerValue, at: now) }
    if let replaced = core.enqueue(pending, for: key, at: now) {
      statistics.collapsed += 1
      if isWatched || isJournalled || replaced.origin != nil {
        tellReplaced(replaced, of: key, at: now)
      }
    }
    if states[place].ready != nil { dropRepetition(of: key, reason: Self.newerValue, at: now) }
    if !facts[place].excluded.isEmpty { dropExcluded(by: key, at: now) }
    if !facts[place].isAction { setTarget(value, of: key) }
    // A leading value leaves at once.
    while let run = core.nextReady(at: now) { settle(run, at: now) }
  }

  /// Why a value ended that something newer replaced.
  static var newerValue: String { "newer value" }

  /// A value that waits to be sent once more gives way: nothing newer may be followed by it.
  mutating func dropRepetition(of key: KeyIndex, reason: String, at now: Moment) {
    guard states[Int(key.rawValue)].ready.map({ $0.attempt > 1 }) ?? false,
      let ready = takeReady(key)
    else { return }
    states[Int(key.rawValue)].approach.pass(ready.change.value)
    tell(
      .superseded,
      of: ready.change,
      for: key,
      collapsed: ready.collapsed,
      attempt: ready.attempt,
      reason: reason,
      at: now
    )
  }

  private mutating func tellReplaced(_ replaced: PendingChange, of key: KeyIndex, at now: Moment) {
    // What waits now counts the replaced value too.
    let collapsed = core.pending(key).map { $0.collapsed - 1 } ?? 0
    tell(
      .superseded,
      of: replaced,
      for: key,
      collapsed: max(collapsed, 0),
      reason: Self.newerValue,
      at: now
    )
  }

  /// Ends the commands of other keys that a new value of `key` ends; of `keys` alone, if given.
  mutating func endRelated(
    to key: KeyIndex,
    among keys: [KeyIndex]? = nil,
    isUrgent: Bool,
    at now: Moment
  ) {
    for other in isUrgent ? facts[Int(key.rawValue)].ends : []
    where keys?.contains(other) ?? true {
      endWaiting(other, as: .cancelled, reason: "urgent", at: now)
      endOnItsWay(other, as: .cancelled, reason: "urgent", at: now)
      refreshTarget(other)
    }
    if !facts[Int(key.rawValue)].excluded.isEmpty { dropExcluded(by: key, among: keys, at: now) }
  }

  /// Of properties that exclude each other the newer wins.
  private mutating func dropExcluded(
    by key: KeyIndex,
    among keys: [KeyIndex]? = nil,
    at now: Moment
  ) {
    let reason = "replaced by \(registry.properties[Int(key.rawValue)].property.id)"
    for other in facts[Int(key.rawValue)].excluded where keys?.contains(other) ?? true {
      endWaiting(other, as: .superseded, reason: reason, at: now)
      endOnItsWay(other, as: .superseded, reason: reason, at: now)
      refreshTarget(other)
    }
  }

  /// An urgent value: ends what it overrides, and goes to the head of its lane.
  private mutating func override(_ key: KeyIndex, with pending: PendingChange, at now: Moment) {
    let place = Int(key.rawValue)
    tell(.accepted, of: pending, for: key, isUrgent: true, at: now)
    endWaiting(key, as: .cancelled, reason: "urgent", at: now)
    core.restartInterval(of: key, at: now)
    endOnItsWay(key, as: .cancelled, reason: "urgent", at: now)
    endRelated(to: key, isUrgent: true, at: now)
    if !facts[place].isAction { setTarget(pending.value, of: key) }
    // Nothing of it waits for quiet: a value that was settling has just been ended.
    makeReady(pending, for: key, collapsed: 0, isUrgent: true, at: now)
  }

  /// Drops what waits for `key`, in the queue, behind it, or for the device's state.
  @discardableResult
  mutating func endWaiting(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    at now: Moment
  ) -> Bool {
    var ended = dropHeld(key, as: phase, reason: reason, at: now)
    if case .cancelled(let change, let collapsed) = core.cancel(key) {
      ended = true
      tell(phase, of: change, for: key, collapsed: collapsed, reason: reason, at: now)
    }
    if let ready = takeReady(key) {
      ended = true
      tell(
        phase,
        of: ready.change,
        for: key,
        collapsed: ready.collapsed,
        attempt: ready.attempt,
        reason: reason,
        at: now
      )
    }
    return ended
  }

  /// Ends the command that is on its way; its acknowledgement, if still to come, is not told.
  mutating func endOnItsWay(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    if let taken = states[place].arriving {
      // Whatever ends it, the device may not get there any more.
      states[place].arriving = nil
      states[place].approach.pass(taken)
      refreshTarget(key)
    }
    guard let outstanding = states[place].onItsWay, !outstanding.isEnded else { return }
    switch outstanding.stage {
    case .sending: states[place].onItsWay?.isEnded = true
    case .sent: dropOnItsWay(key)
    }
    states[place].approach.pass(outstanding.change.value)
    tell(
      phase,
      of: outstanding.change,
      for: key,
      collapsed: outstanding.collapsed,
      attempt: outstanding.attempt,
      reason: reason,
      at: now
    )
  }

  /// Drops what waits for `key`; `false` when nothing did.
  @discardableResult
  package mutating func cancel(_ key: KeyIndex, at now: Moment) -> Bool {
    let ended = endWaiting(key, as: .cancelled, reason: nil, at: now)
    if ended { refreshTarget(key) }
    return ended
  }

  /// Ends the quiet period of `key` now; `false` when nothing was pending.
  @discardableResult
  package mutating func flush(_ key: KeyIndex, at now: Moment) -> Bool {
    switch core.flush(key, at: now) {
    case .run(let run):
      settle(run, at: now)
      return true
    case .markedDue: return true
    case .nothing: return false
    }
  }

  /// Ends every quiet period, and lets lanes hold nothing back: the way out.
  ///
  /// Later changes are refused, and so are steps that wait for a state.
  package mutating func close(at now: Moment) {
    isClosing = true
    let reason = ValidationError.shuttingDown.description
    for key in heldSteps.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
      refuseHeld(key, reason: reason, at: now)
    }
    for key in core.pendingKeys() { flush(key, at: now) }
  }

  // MARK: - Steps that wait for the device's state

  /// Waits for the state that was asked for, if there is one to wait for.
  private mutating func hold(
    _ change: Change,
    of key: KeyIndex,
    _ terms: Terms,
    at now: Moment
  ) throws(ValidationError) {
    try checkMove(change, of: key)
    guard facts[Int(key.rawValue)].canAsk, isConnected else { throw .noBase }
    let waiting = heldSteps[key]?.count ?? 0
    guard waiting < HeldStep.limit else {
      throw .unsupported("\(waiting) steps wait for the device's state already")
    }
    guard waiting > 0 || hasRoom(for: key) else {
      throw .tooManyPending(limit: settings.pendingLimit)
    }
    if waiting == 0 {
      deadlines.set(.heldStep, of: key, at: now.advanced(by: settings.stepPatience))
    }
    heldSteps[key, default: []].append(
      HeldStep(change: change, number: nextNumber(), acceptedAt: now, terms: terms)
    )
  }

  /// A step or toggle that the kind does not have is refused before it waits for anything.
  private func checkMove(_ change: Change, of key: KeyIndex) throws(ValidationError) {
    switch change {
    case .set: break
    case .step(let amount):
      _ = try registry.properties[Int(key.rawValue)].property.stepped(from: .number(0), by: amount)
    case .toggle:
      _ = try registry.properties[Int(key.rawValue)].property.toggled(from: .boolean(false))
    }
  }

  /// Steps that waited for the state are applied to it.
  mutating func applyHeldSteps(to key: KeyIndex, at now: Moment) {
    for held in takeHeld(key) {
      do throws(ValidationError) {
        guard let value = try value(after: held.change, of: key) else { throw .noBase }
        try take(value, of: key, held.terms, at: now)
        if notesAppliedSteps {
          appliedSteps.append(
            AppliedStep(
              key: key,
              value: value,
              at: now,
              origin: held.terms.origin,
              skipsQuiet: held.terms.skipsQuiet
            )
          )
        }
      } catch {
        statistics.rejected += 1
        tell(.rejected, of: held, for: key, reason: error.description, at: now)
      }
    }
  }

  /// Steps whose state did not come are refused.
  mutating func refuseHeld(_ key: KeyIndex, reason: String, at now: Moment) {
    let held = takeHeld(key)
    statistics.rejected += UInt64(held.count)
    for step in held { tell(.rejected, of: step, for: key, reason: reason, at: now) }
  }

  @discardableResult
  private mutating func dropHeld(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    at now: Moment
  ) -> Bool {
    let held = takeHeld(key)
    for step in held { tell(phase, of: step, for: key, reason: reason, at: now) }
    return !held.isEmpty
  }

  private mutating func takeHeld(_ key: KeyIndex) -> [HeldStep] {
    guard !heldSteps.isEmpty, let held = heldSteps.removeValue(forKey: key) else { return [] }
    deadlines.remove(.heldStep, of: key)
    return held
  }

  private mutating func tell(
    _ phase: Phase,
    of held: HeldStep,
    for key: KeyIndex,
    reason: String?,
    at now: Moment
  ) {
    events.append(
      CommandEvent(
        key: key,
        phase: phase,
        value: nil,
        collapsed: 0,
        number: held.number,
        acceptedAt: held.acceptedAt,
        at: now,
        attempt: 1,
        reason: reason,
        origin: held.terms.origin,
        isFinal: true
      )
    )
  }
}
