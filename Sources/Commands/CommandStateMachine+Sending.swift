// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut

/// What goes out: from the queue to the road, to the broker, and what the broker said.
extension CommandStateMachine {
  /// One message for the broker.
  package struct Publish: Sendable {
    /// Names the publish in ``CommandStateMachine/finish(_:_:at:)``.
    package var token: UInt64
    package var topic: String
    package var payload: [UInt8]
    package var qos: Int
    /// What is left of the `ttl` in nanoseconds; one second at least.
    package var timeLeft: UInt64
    package var keys: [KeyIndex]
    /// Some of it was accepted before a restart.
    package var isReplayed = false

    /// What is left of the `ttl`.
    package var expiry: Duration { .nanoseconds(Int64(clamping: timeLeft)) }

    /// The same in whole seconds, rounded up, as MQTT has it.
    package var expirySeconds: UInt32 {
      UInt32(clamping: timeLeft / 1_000_000_000 + (timeLeft % 1_000_000_000 > 0 ? 1 : 0))
    }

    /// What is left at `now` of the time until `end`.
    static func timeLeft(from now: Moment, until end: Moment) -> UInt64 {
      let (left, isOver) = end.nanoseconds.subtractingReportingOverflow(now.nanoseconds)
      return isOver ? 1_000_000_000 : max(left, 1_000_000_000)
    }
  }

  /// What became of a publish.
  package enum Outcome: Hashable, Sendable {
    case acknowledged
    /// The broker refused it; sending the same again is pointless.
    case refused(String)
    /// The connection ended first; whether the broker has it is unknown.
    case lost
  }

  // MARK: - To the road

  /// A value has settled: it leaves, or proves unnecessary.
  mutating func settle(_ run: LastOutCore<PendingChange>.Run, at now: Moment) {
    core.finish(run.key, at: now)
    guard isKnown(run.value.value, of: run.key) else {
      return makeReady(
        run.value,
        for: run.key,
        collapsed: run.collapsed,
        isUrgent: false,
        at: now
      )
    }
    var collapsed = run.collapsed
    if let older = takeReady(run.key) {
      collapsed += replace(older, of: run.key, at: now)
    }
    statistics.unchanged += 1
    tell(.unchanged, of: run.value, for: run.key, collapsed: collapsed, at: now)
    refreshTarget(run.key)
  }

  /// Whether the device, being there, is known to show `value` already.
  private func isKnown(_ value: Value, of key: KeyIndex) -> Bool {
    let place = Int(key.rawValue)
    guard let actual = states[place].actual, !states[place].approach.isOpen,
      states[place].onItsWay == nil, isOnline(key), !facts[place].isAction,
      !registry.properties[place].property.always
    else { return false }
    return registry.properties[place].property.isSameOnWire(actual, value)
  }

  /// Puts a value on its road; what waited there before is superseded.
  mutating func makeReady(
    _ change: PendingChange,
    for key: KeyIndex,
    collapsed: Int,
    isUrgent: Bool,
    at now: Moment
  ) {
    var collapsed = collapsed
    if let older = states[Int(key.rawValue)].ready {
      // It keeps the place in the lane.
      collapsed += replace(older, of: key, at: now)
    }
    setReady(
      ReadyValue(
        change: change,
        collapsed: collapsed,
        attempt: 1,
        retries: 0,
        isUrgent: isUrgent
      ),
      key
    )
    takeRoad(key, at: now)
  }

  /// Tells that a waiting value was superseded; returns what the newer one counts for it.
  private mutating func replace(_ older: ReadyValue, of key: KeyIndex, at now: Moment) -> Int {
    statistics.collapsed += 1
    tell(
      .superseded,
      of: older.change,
      for: key,
      collapsed: older.collapsed,
      attempt: older.attempt,
      reason: Self.newerValue,
      at: now
    )
    return older.collapsed + 1
  }

  private mutating func setReady(_ ready: ReadyValue, _ key: KeyIndex) {
    if states[Int(key.rawValue)].ready == nil { readyCount += 1 }
    states[Int(key.rawValue)].ready = ready
  }

  /// Takes the waiting value out, off its road too.
  mutating func takeReady(_ key: KeyIndex) -> ReadyValue? {
    let place = Int(key.rawValue)
    guard let ready = states[place].ready.take() else { return nil }
    readyCount -= 1
    lanes.remove(key, device: facts[place].device)
    deadlines.remove(.expiry, of: key)
    return ready
  }

  /// Puts a ready value where it belongs: in its lane, behind its predecessor, or on hold.
  ///
  /// To be called whenever something changes that it depends on; called again it changes nothing.
  mutating func takeRoad(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard let (isUrgent, isRepeated, expiresAt) = states[place].readyTerms else { return }
    if isOnline(key) {
      deadlines.remove(.expiry, of: key)
    } else if facts[place].isAction {
      statistics.failed += 1
      return endReady(key, as: .failed, reason: offlineReason, at: now)
    } else {
      deadlines.set(.expiry, of: key, at: expiresAt)
    }
    // An urgent value that was sent once may be repeated, whatever it waited for the first time.
    let mayLeave = isUrgent && (isRepeated || states[place].mayUrgentLeave)
    let isWithheld = states[place].isWithheld && !mayLeave
    if devices[facts[place].device].isOnline, !isSending(key), !isWithheld {
      lanes.add(key, device: facts[place].device, isUrgent: isUrgent)
    } else {
      lanes.remove(key, device: facts[place].device)
    }
  }

  var offlineReason: String {
    isConnected ? "the device is offline" : "the broker is not connected"
  }

  /// Ends the value that waits for its road.
  mutating func endReady(_ key: KeyIndex, as phase: Phase, reason: String?, at now: Moment) {
    guard let ready = takeReady(key) else { return }
    tell(
      phase,
      of: ready.change,
      for: key,
      collapsed: ready.collapsed,
      attempt: ready.attempt,
      reason: reason,
      at: now
    )
    refreshTarget(key)
  }

  // MARK: - To the broker

  /// The next message that may leave now; `nil` when there is none.
  ///
  /// Call it while the client can publish.
  package mutating func nextPublish(at now: Moment) -> Publish? {
    guard isConnected else { return nil }
    while let key = lanes.next(at: now, ignoresLimits: isClosing) {
      if isUnnecessary(key) {
        // The device came to show it while it waited.
        statistics.unchanged += 1
        endReady(key, as: .unchanged, reason: nil, at: now)
        continue
      }
      return depart(key, at: now)
    }
    return nil
  }

  /// Whether the device is known to show already what would leave.
  private func isUnnecessary(_ key: KeyIndex) -> Bool {
    // A look at the whole would be a copy of it, and most keys have not reported anything.
    guard states[Int(key.rawValue)].actual != nil else { return false }
    guard let ready = states[Int(key.rawValue)].ready else {
      preconditionFailure("A key is in its lane, but has nothing to send.")
    }
    return ready.attempt == 1 && !ready.isUrgent && isKnown(ready.change.value, of: key)
  }

  // MARK: - What the broker said

  /// Takes the broker's answer to a publish.
  ///
  /// A token that has landed already is ignored.
  package mutating func finish(_ token: UInt64, _ outcome: Outcome, at now: Moment) {
    for key in flights.land(token) {
      guard let command = states[Int(key.rawValue)].onItsWay else {
        preconditionFailure("A publish was answered whose key has nothing on its way.")
      }
      sendingCount -= 1
      switch outcome {
      case .acknowledged: acknowledged(key, command, at: now)
      case .refused(let reason): refused(key, command, reason: reason, at: now)
      case .lost: lost(key, command, at: now)
      }
      takeRoad(key, at: now)
    }
  }

  private mutating func acknowledged(_ key: KeyIndex, _ command: Outstanding, at now: Moment) {
    let place = Int(key.rawValue)
    statistics.acknowledged += 1
    guard !command.isEnded else { return dropOnItsWay(key) }
    tell(
      .sent,
      of: command.change,
      for: key,
      collapsed: command.collapsed,
      attempt: command.attempt,
      at: now
    )
    guard facts[place].canConfirm,
      let within = registry.properties[place].property.confirm?.within
    else {
      dropOnItsWay(key)
      if !facts[place].isAction { states[place].lastSent = command.change.value }
      return refreshTarget(key)
    }
    if command.isShown { return confirm(key, command, at: now) }
    if let refusal = command.refusal { return fail(key, command, reason: refusal, at: now) }
    if command.isTaken { return confirm(key, command, isShown: false, at: now) }
    states[place].onItsWay?.stage = .sent
    deadlines.set(.confirmation, of: key, at: now.advanced(by: within + command.transition))
  }

  /// Nothing of the key is on its way any more.
  mutating func dropOnItsWay(_ key: KeyIndex) {
    states[Int(key.rawValue)].onItsWay = nil
    deadlines.remove(.confirmation, of: key)
  }

  private mutating func refused(
    _ key: KeyIndex,
    _ command: Outstanding,
    reason: String,
    at now: Moment
  ) {
    if command.isEnded { dropOnItsWay(key) } else { fail(key, command, reason: reason, at: now) }
  }

  /// Ends the command on its way as failed; the target goes back.
  mutating func fail(_ key: KeyIndex, _ command: Outstanding, reason: String, at now: Moment) {
    dropOnItsWay(key)
    states[Int(key.rawValue)].approach.pass(command.change.value)
    statistics.failed += 1
    tell(
      .failed,
      of: command.change,
      for: key,
      collapsed: command.collapsed,
      attempt: command.attempt,
      reason: reason,
      at: now
    )
    refreshTarget(key)
  }

  /// The connection ended before the answer: the newest value of the key goes again.
  private mutating func lost(_ key: KeyIndex, _ command: Outstanding, at now: Moment) {
    if command.isEnded {
      dropOnItsWay(key)
    } else if isAction(key) {
      fail(key, command, reason: "the connection to the broker was lost", at: now)
    } else if hasNewer(key) {
      supersedeOnItsWay(key, command, at: now)
    } else {
      again(command, of: key, retries: command.retries)
    }
  }

  /// Whether something newer waits to leave.
  func hasNewer(_ key: KeyIndex) -> Bool {
    states[Int(key.rawValue)].ready != nil || core.isPending(key)
  }

  /// Ends the command on its way because something newer waits.
  mutating func supersedeOnItsWay(_ key: KeyIndex, _ command: Outstanding, at now: Moment) {
    dropOnItsWay(key)
    states[Int(key.rawValue)].approach.pass(command.change.value)
    tell(
      .superseded,
      of: command.change,
      for: key,
      collapsed: command.collapsed,
      attempt: command.attempt,
      reason: Self.newerValue,
      at: now
    )
  }

  /// Puts a command back on its road for another attempt.
  mutating func again(_ command: Outstanding, of key: KeyIndex, retries: Int) {
    dropOnItsWay(key)
    setReady(
      ReadyValue(
        change: command.change,
        collapsed: command.collapsed,
        attempt: command.attempt + 1,
        retries: retries,
        isUrgent: command.isUrgent
      ),
      key
    )
  }
}
