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
    /// What is left of the `ttl`; one second at least.
    package var expiry: Duration
    package var keys: [KeyIndex]
    /// Some of it was accepted before a restart.
    package var isReplayed = false
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
    guard let ready = states[place].ready else { return nil }
    states[place].ready = nil
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
    guard let ready = states[place].ready else { return }
    if isOnline(key) {
      deadlines.remove(.expiry, of: key)
    } else if facts[place].isAction {
      statistics.failed += 1
      return endReady(key, as: .failed, reason: offlineReason, at: now)
    } else {
      deadlines.set(.expiry, of: key, at: ready.change.expiresAt)
    }
    if devices[facts[place].device].isOnline, !isSending(key), !states[place].isWithheld {
      lanes.add(key, device: facts[place].device, isUrgent: ready.isUrgent)
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
      guard let ready = states[Int(key.rawValue)].ready else {
        preconditionFailure("A key is in its lane, but has nothing to send.")
      }
      if ready.attempt == 1, !ready.isUrgent, isKnown(ready.change.value, of: key) {
        // The device came to show it while it waited.
        statistics.unchanged += 1
        endReady(key, as: .unchanged, reason: nil, at: now)
        continue
      }
      return depart(key, at: now)
    }
    return nil
  }

  private mutating func depart(_ first: KeyIndex, at now: Moment) -> Publish {
    let keys = gatherMerge(with: first, at: now)
    let values = keys.compactMap { takeReady($0) }
    lanes.left(device: facts[Int(first.rawValue)].device, at: now)
    // A repetition has the number of the first attempt: whichever reply comes speaks of the value.
    let number = settings.firstMessage &+ (values.first?.change.number ?? 0)
    let message = Int64(number & 0x7FFF_FFFF)
    let payload = payload(of: keys, values, message)
    let road = registry.properties[Int(first.rawValue)].property.command
    var qos = road.qos
    var expiry = Moment(nanoseconds: .max)
    var isReplayed = false
    let transition = Self.transition(of: values)
    for (key, ready) in zip(keys, values) {
      qos = max(qos, registry.properties[Int(key.rawValue)].property.command.qos)
      expiry = min(expiry, ready.change.expiresAt)
      isReplayed = isReplayed || ready.change.isReplayed
      leave(key, ready, message, transition: transition, at: now)
    }
    statistics.published += 1
    return Publish(
      token: flights.depart(keys),
      topic: road.topic,
      payload: payload,
      qos: qos,
      expiry: max(now.duration(to: expiry), .seconds(1)),
      keys: keys,
      isReplayed: isReplayed
    )
  }

  /// One payload for all of `keys`, options included where the payload is an object.
  private func payload(
    of keys: [KeyIndex],
    _ values: [ReadyValue],
    _ message: Int64
  ) -> [UInt8] {
    var parts: [(template: PayloadTemplate, wire: JSONValue)] = []
    var options: [JSONValue.Member] = []
    for (key, ready) in zip(keys, values) {
      let place = Int(key.rawValue)
      let template = registry.properties[place].property.command.payload
      let wire = registry.properties[place].property.wireValue(of: ready.change.value)
      parts.append((template, wire))
      guard template.isObject else { continue }
      for option in ready.change.options ?? [] {
        options.removeAll { $0.name == option.name }
        options.append(option)
      }
    }
    var payload: [UInt8] = []
    PayloadTemplate.render(merging: parts, options: options, id: message, into: &payload)
    return payload
  }

  /// What the longest `transition` option, in seconds, adds to the time a confirmation may take.
  private static func transition(of values: [ReadyValue]) -> Duration {
    var longest = 0.0
    for ready in values {
      for option in ready.change.options ?? [] where option.name == "transition" {
        longest = max(longest, option.value.double ?? 0)
      }
    }
    return .milliseconds(Int64(min(longest, 86_400) * 1000))
  }

  /// All pending properties of a merging device with the same command topic leave together.
  private mutating func gatherMerge(with first: KeyIndex, at now: Moment) -> [KeyIndex] {
    let device = facts[Int(first.rawValue)].device
    let lead = registry.properties[Int(first.rawValue)].property.command
    guard registry.devices[device].merge, lead.payload.isObject, !isAction(first) else {
      return [first]
    }
    var keys: [KeyIndex] = []
    for raw in registry.indices(ofDevice: device) {
      let key = KeyIndex(raw)
      if key != first {
        guard core.isPending(key) || states[Int(raw)].ready != nil, !isSending(key),
          !isAction(key), !states[Int(raw)].isWithheld, shares(lead, key)
        else { continue }
        if case .run(let run) = core.flush(key, at: now) { settle(run, at: now) }
        guard states[Int(raw)].ready != nil else { continue }
      }
      keys.append(key)
    }
    return keys
  }

  func shares(_ lead: CommandRoad, _ key: KeyIndex) -> Bool {
    let road = registry.properties[Int(key.rawValue)].property.command
    return road.topic == lead.topic && road.payload.isObject
  }

  private mutating func leave(
    _ key: KeyIndex,
    _ ready: ReadyValue,
    _ message: Int64,
    transition: Duration,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    if let older = states[place].onItsWay {
      // Sent and not confirmed: the newer value takes over.
      dropOnItsWay(key)
      states[place].approach.pass(older.change.value)
      tell(
        .superseded,
        of: older.change,
        for: key,
        collapsed: older.collapsed,
        attempt: older.attempt,
        reason: Self.newerValue,
        at: now
      )
    }
    if let older = states[place].arriving {
      states[place].arriving = nil
      states[place].approach.pass(older)
    }
    states[place].approach.begin(from: states[place].actual)
    states[place].onItsWay = Outstanding(
      change: ready.change,
      collapsed: ready.collapsed,
      attempt: ready.attempt,
      retries: ready.retries,
      isUrgent: ready.isUrgent,
      transition: transition,
      message: message
    )
    sendingCount += 1
    tell(
      .sending,
      of: ready.change,
      for: key,
      collapsed: ready.collapsed,
      attempt: ready.attempt,
      at: now
    )
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
