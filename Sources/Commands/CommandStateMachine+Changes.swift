// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
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

  /// Takes a change, or refuses it; refused changes leave everything as it was.
  ///
  /// - Parameters:
  ///   - skipsQuiet: The change, then a flush of its key.
  ///   - ttl: How long the value may wait for an absent broker or device.
  ///   - options: Members that ride with the command (see ``Device/options``).
  package mutating func change(
    _ change: Change, of key: KeyIndex, at now: Moment, origin: ChangeOrigin? = nil,
    ttl: Duration? = nil, options: [JSONValue.Member]? = nil, skipsQuiet: Bool = false
  ) throws(ValidationError) {
    statistics.changes += 1
    do {
      try take(
        change, of: key, at: now, origin: origin, ttl: ttl, options: options,
        skipsQuiet: skipsQuiet)
    } catch {
      statistics.rejected += 1
      throw error
    }
  }

  private mutating func take(
    _ change: Change, of key: KeyIndex, at now: Moment, origin: ChangeOrigin?, ttl: Duration?,
    options: [JSONValue.Member]?, skipsQuiet: Bool
  ) throws(ValidationError) {
    guard !isClosing else { throw .shuttingDown }
    let value: Value
    switch change {
    case .set(let given): value = given
    case .step(let amount):
      guard let base = base(of: key) else { return try hold(.step(amount), of: key, origin, now) }
      value = try property(key).stepped(from: base, by: amount)
    case .toggle:
      guard let base = base(of: key) else { return try hold(.toggle, of: key, origin, now) }
      value = try property(key).toggled(from: base)
    }
    changeNumber += 1
    let pending = PendingChange(
      value: value, number: changeNumber, acceptedAt: now, ttl: ttl, origin: origin,
      options: options)
    if property(key).urgent.contains(value) {
      override(key, with: pending, at: now)
    } else {
      try enqueue(pending, for: key, at: now)
      if skipsQuiet { flush(key, at: now) }
    }
  }

  /// A number for something that is refused without being a change.
  package mutating func nextNumber() -> UInt64 {
    changeNumber += 1
    return changeNumber
  }

  /// Tells that a change was refused before it was one, because its value could not be read.
  package mutating func reject(
    _ key: KeyIndex, reason: String, at now: Moment, origin: ChangeOrigin? = nil
  ) {
    changeNumber += 1
    events.append(
      CommandEvent(
        key: key, phase: .rejected, value: nil, collapsed: 0, number: changeNumber,
        acceptedAt: now, at: now, attempt: 1, reason: reason, origin: origin, isFinal: true))
  }

  /// What a step counts from: the pending value, the target on its way or unconfirmed, the actual
  /// value, the last one sent.
  package func base(of key: KeyIndex) -> Value? {
    let state = states[Int(key.rawValue)]
    if let pending = core.pending(key) { return pending.value.value }
    if let ready = state.ready { return ready.change.value }
    if let outstanding = state.onItsWay, !outstanding.isEnded { return outstanding.change.value }
    return state.actual ?? state.lastSent
  }

  private mutating func enqueue(
    _ pending: PendingChange, for key: KeyIndex, at now: Moment
  ) throws(ValidationError) {
    let isNew = core.pending(key) == nil
    if isNew, core.pendingCount + readyCount >= settings.pendingLimit {
      throw .tooManyPending(limit: settings.pendingLimit)
    }
    tell(.accepted, of: pending, for: key, at: now)
    if let replaced = core.enqueue(pending, for: key, at: now) {
      statistics.collapsed += 1
      tell(.superseded, of: replaced, for: key, reason: "newer value", at: now)
    }
    heldSteps[key] = nil
    dropExcluded(by: key, at: now)
    setTarget(pending.value, of: key)
  }

  /// Of properties that exclude each other the newer wins.
  private mutating func dropExcluded(by key: KeyIndex, at now: Moment) {
    let device = deviceNumber(key)
    let newer = property(key)
    for raw in registry.indices(ofDevice: device) where raw != key.rawValue {
      let other = KeyIndex(raw)
      guard newer.excludes.contains(property(other).id) || property(other).excludes.contains(newer.id)
      else { continue }
      endWaiting(other, as: .superseded, reason: newer.id, at: now)
      refreshTarget(other)
    }
  }

  /// An urgent value: ends what it overrides, and goes to the head of its lane.
  private mutating func override(_ key: KeyIndex, with pending: PendingChange, at now: Moment) {
    tell(.accepted, of: pending, for: key, at: now)
    let device = deviceNumber(key)
    let ends = property(key).ends
    for raw in registry.indices(ofDevice: device) {
      let other = KeyIndex(raw)
      guard raw == key.rawValue || ends.contains(property(other).id) else { continue }
      endWaiting(other, as: .cancelled, reason: "urgent", at: now)
      endOnItsWay(other, as: .cancelled, reason: "urgent", at: now)
      if raw != key.rawValue { refreshTarget(other) }
    }
    // Nothing of it waits for quiet: a value that was settling has just been ended.
    makeReady(pending, for: key, collapsed: 0, isUrgent: true, at: now)
    setTarget(isAction(key) ? nil : pending.value, of: key)
  }

  /// Drops what waits for `key`, in the queue, behind it, or for the device's state.
  @discardableResult
  mutating func endWaiting(
    _ key: KeyIndex, as phase: Phase, reason: String?, at now: Moment
  ) -> Bool {
    var ended = false
    if let held = heldSteps.removeValue(forKey: key) {
      ended = true
      tellHeld(held, of: key, as: phase, reason: reason, at: now)
    }
    if case .cancelled(let change, let collapsed) = core.cancel(key) {
      ended = true
      tell(phase, of: change, for: key, collapsed: collapsed, reason: reason, at: now)
    }
    if let ready = states[Int(key.rawValue)].ready {
      ended = true
      states[Int(key.rawValue)].ready = nil
      readyCount -= 1
      tell(
        phase, of: ready.change, for: key, collapsed: ready.collapsed, attempt: ready.attempt,
        reason: reason, at: now)
    }
    return ended
  }

  /// Ends the command that is on its way; its acknowledgement, if still to come, is not told.
  mutating func endOnItsWay(
    _ key: KeyIndex, as phase: Phase, reason: String?, at now: Moment
  ) {
    let place = Int(key.rawValue)
    guard let outstanding = states[place].onItsWay, !outstanding.isEnded else { return }
    switch outstanding.stage {
    case .sending: states[place].onItsWay?.isEnded = true
    case .sent: states[place].onItsWay = nil
    }
    tell(
      phase, of: outstanding.change, for: key, collapsed: outstanding.collapsed,
      attempt: outstanding.attempt, reason: reason, at: now)
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

  /// Ends every quiet period, and lets lanes hold nothing back: the way out. Later changes are
  /// refused.
  package mutating func close(at now: Moment) {
    isClosing = true
    for key in core.pendingKeys() { flush(key, at: now) }
  }

  /// Waits for the state that was asked for, if there is one to wait for.
  private mutating func hold(
    _ move: HeldSteps.Move, of key: KeyIndex, _ origin: ChangeOrigin?, _ now: Moment
  ) throws(ValidationError) {
    try checkMove(move, of: key)
    guard property(key).state?.get != nil, isConnected else { throw .noBase }
    changeNumber += 1
    if heldSteps[key] != nil {
      heldSteps[key]?.moves.append(move)
    } else {
      let stamp = newStamp()
      heldSteps[key] = HeldSteps(
        moves: [move], origin: origin, number: changeNumber, acceptedAt: now, stamp: stamp)
      deadlines.insert(
        .init(
          at: now.advanced(by: settings.stepPatience), key: key, kind: .heldStep, stamp: stamp))
    }
  }

  /// A step or toggle that the kind does not have is refused before it waits for anything.
  private func checkMove(_ move: HeldSteps.Move, of key: KeyIndex) throws(ValidationError) {
    let property = property(key)
    switch (move, property.kind) {
    case (.step(let amount), .number), (.step(let amount), .integer):
      guard amount.isFinite else {
        throw .wrongType(found: "\(amount)", expected: "a finite number", suggestion: nil)
      }
    case (.toggle, .boolean): break
    case (.step, _): _ = try property.stepped(from: .text(""), by: 0)
    case (.toggle, _): _ = try property.toggled(from: .text(""))
    }
  }

  mutating func tellHeld(
    _ held: HeldSteps, of key: KeyIndex, as phase: Phase, reason: String?, at now: Moment
  ) {
    events.append(
      CommandEvent(
        key: key, phase: phase, value: nil, collapsed: held.moves.count - 1, number: held.number,
        acceptedAt: held.acceptedAt, at: now, attempt: 1, reason: reason, origin: held.origin,
        isFinal: true))
  }

  func isAction(_ key: KeyIndex) -> Bool {
    if case .action = property(key).kind { true } else { false }
  }
}
