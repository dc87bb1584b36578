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
    /// What is left of the `ttl`.
    package var expiry: Duration
    package var keys: [KeyIndex]
  }

  /// What became of a publish.
  package enum Outcome: Hashable, Sendable {
    case acknowledged
    /// The broker refused it; sending the same again is pointless.
    case refused(String)
    /// The connection ended first; whether the broker has it is unknown.
    case lost
  }

  /// A value has settled: it leaves, or proves unnecessary.
  mutating func settle(_ run: LastOutCore<PendingChange>.Run, at now: Moment) {
    core.finish(run.key, at: now)
    guard !isKnown(run.value.value, of: run.key) else {
      statistics.unchanged += 1
      tell(.unchanged, of: run.value, for: run.key, collapsed: run.collapsed, at: now)
      refreshTarget(run.key)
      return
    }
    makeReady(run.value, for: run.key, collapsed: run.collapsed, isUrgent: false, at: now)
  }

  /// Whether the device, being there, is known to show `value` already.
  private func isKnown(_ value: Value, of key: KeyIndex) -> Bool {
    let state = states[Int(key.rawValue)]
    let property = property(key)
    guard !property.always, !isAction(key), isOnline(key), state.ready == nil,
      state.onItsWay == nil, let actual = state.actual
    else { return false }
    return property.isSameOnWire(actual, value)
  }

  /// Puts a value on its road; what waited there before is superseded.
  mutating func makeReady(
    _ change: PendingChange, for key: KeyIndex, collapsed: Int, isUrgent: Bool, at now: Moment
  ) {
    let place = Int(key.rawValue)
    var collapsed = collapsed
    if let older = states[place].ready {
      collapsed += older.collapsed + 1
      statistics.collapsed += 1
      tell(
        .superseded, of: older.change, for: key, collapsed: older.collapsed,
        attempt: older.attempt, reason: "newer value", at: now)
    } else {
      readyCount += 1
    }
    states[place].ready = ReadyValue(
      change: change, collapsed: collapsed, attempt: 1, retries: 0, isUrgent: isUrgent,
      stamp: newStamp())
    takeRoad(key, at: now)
  }

  /// Lets a ready value join its lane, unless something holds it.
  mutating func takeRoad(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard let ready = states[place].ready else { return }
    if !isOnline(key) {
      if isAction(key) { return failReady(key, reason: offlineReason(key), at: now) }
      deadlines.insert(
        .init(at: expiry(of: ready.change, key), key: key, kind: .expiry, stamp: ready.stamp))
    }
    guard devices[deviceNumber(key)].isOnline, !isSending(key) else { return }
    let device = deviceNumber(key)
    lanes[devices[device].lane].add(key, device: device, isUrgent: ready.isUrgent)
  }

  func isSending(_ key: KeyIndex) -> Bool {
    states[Int(key.rawValue)].onItsWay.map { $0.stage == .sending } ?? false
  }

  func offlineReason(_ key: KeyIndex) -> String {
    isConnected ? "the device is offline" : "the broker is not connected"
  }

  func expiry(of change: PendingChange, _ key: KeyIndex) -> Moment {
    change.acceptedAt.advanced(by: change.ttl ?? property(key).ttl)
  }

  mutating func failReady(_ key: KeyIndex, reason: String, at now: Moment) {
    statistics.failed += 1
    endWaitingReady(key, as: .failed, reason: reason, at: now)
  }

  mutating func endWaitingReady(
    _ key: KeyIndex, as phase: Phase, reason: String?, at now: Moment
  ) {
    let place = Int(key.rawValue)
    guard let ready = states[place].ready else { return }
    states[place].ready = nil
    readyCount -= 1
    tell(
      phase, of: ready.change, for: key, collapsed: ready.collapsed, attempt: ready.attempt,
      reason: reason, at: now)
    refreshTarget(key)
  }

  /// The next message that may leave now; `nil` when there is none. Call it while the client can
  /// publish.
  package mutating func nextPublish(at now: Moment) -> Publish? {
    guard isConnected else { return nil }
    for _ in lanes.indices {
      let lane = laneCursor
      laneCursor = (laneCursor + 1) % lanes.count
      while lanes[lane].count > 0 {
        if !isClosing, let token = lanes[lane].nextToken(after: now), token > now { break }
        guard let key = lanes[lane].removeFirst() else { break }
        guard mayLeave(key) else { continue }
        if !isClosing { _ = lanes[lane].takeToken(at: now) }
        return depart(key, at: now)
      }
    }
    return nil
  }

  private func mayLeave(_ key: KeyIndex) -> Bool {
    states[Int(key.rawValue)].ready != nil && devices[deviceNumber(key)].isOnline
      && !isSending(key)
  }

  private mutating func depart(_ first: KeyIndex, at now: Moment) -> Publish {
    let keys = gatherMerge(with: first, at: now)
    let road = property(first).command
    var payload: [UInt8] = []
    var expiry = Moment(nanoseconds: .max)
    var parts: [(template: PayloadTemplate, wire: JSONValue)] = []
    var options: [JSONValue.Member] = []
    for key in keys {
      guard let ready = states[Int(key.rawValue)].ready else { continue }
      parts.append((property(key).command.payload, property(key).wireValue(of: ready.change.value)))
      for option in ready.change.options ?? [] {
        options.removeAll { $0.name == option.name }
        options.append(option)
      }
      expiry = min(expiry, self.expiry(of: ready.change, key))
      leave(key, ready, at: now)
    }
    if parts.count == 1, options.isEmpty {
      parts[0].template.render(parts[0].wire, into: &payload)
    } else {
      PayloadTemplate.render(merging: parts, options: options, into: &payload)
    }
    statistics.published += 1
    return Publish(
      token: flights.depart(keys), topic: road.topic, payload: payload, qos: road.qos,
      expiry: now.duration(to: max(expiry, now)), keys: keys)
  }

  /// All pending properties of a merging device with the same command topic leave together.
  private mutating func gatherMerge(with first: KeyIndex, at now: Moment) -> [KeyIndex] {
    let device = deviceNumber(first)
    let lead = property(first).command
    guard registry.devices[device].merge, lead.payload.isObject, !isAction(first) else {
      return [first]
    }
    var keys: [KeyIndex] = []
    for raw in registry.indices(ofDevice: device) {
      let key = KeyIndex(raw)
      if key != first {
        let road = property(key).command
        guard road.topic == lead.topic, road.payload.isObject, !isAction(key), !isSending(key)
        else { continue }
        if case .run(let run) = core.flush(key, at: now) { settle(run, at: now) }
        guard states[Int(raw)].ready != nil else { continue }
      }
      keys.append(key)
    }
    return keys
  }

  private mutating func leave(_ key: KeyIndex, _ ready: ReadyValue, at now: Moment) {
    let place = Int(key.rawValue)
    if let older = states[place].onItsWay {
      // Sent and not confirmed: the newer value takes over.
      tell(
        .superseded, of: older.change, for: key, collapsed: older.collapsed,
        attempt: older.attempt, reason: "newer value", at: now)
    }
    states[place].ready = nil
    readyCount -= 1
    states[place].onItsWay = Outstanding(
      change: ready.change, collapsed: ready.collapsed, attempt: ready.attempt,
      retries: ready.retries, isUrgent: ready.isUrgent, stage: .sending,
      before: states[place].actual, stamp: newStamp())
    sendingCount += 1
    tell(
      .sending, of: ready.change, for: key, collapsed: ready.collapsed, attempt: ready.attempt,
      at: now)
  }

  /// Takes the broker's answer to a publish. A token that has landed already is ignored.
  package mutating func finish(_ token: UInt64, _ outcome: Outcome, at now: Moment) {
    for key in flights.land(token) {
      sendingCount -= 1
      switch outcome {
      case .acknowledged: acknowledged(key, at: now)
      case .refused(let reason): refused(key, reason: reason, at: now)
      case .lost: lost(key, at: now)
      }
      takeRoad(key, at: now)
    }
  }

  private mutating func acknowledged(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay else { return }
    statistics.acknowledged += 1
    guard !command.isEnded else {
      states[place].onItsWay = nil
      return
    }
    tell(
      .sent, of: command.change, for: key, collapsed: command.collapsed, attempt: command.attempt,
      at: now)
    let property = property(key)
    if let confirmation = property.confirm, property.state != nil, !isAction(key) {
      guard !command.isShown else { return confirm(key, command, at: now) }
      states[place].onItsWay?.stage = .sent
      let within = confirmation.within + transition(of: command.change)
      deadlines.insert(
        .init(
          at: now.advanced(by: within), key: key, kind: .confirmation, stamp: command.stamp))
    } else {
      states[place].onItsWay = nil
      if !isAction(key) { states[place].lastSent = command.change.value }
      refreshTarget(key)
    }
  }

  /// What a `transition` option adds to the time a confirmation may take.
  private func transition(of change: PendingChange) -> Duration {
    let seconds = change.options?.first { $0.name == "transition" }?.value.double ?? 0
    return seconds > 0 && seconds < 86_400 ? .milliseconds(Int64(seconds * 1000)) : .zero
  }

  mutating func confirm(_ key: KeyIndex, _ command: Outstanding, at now: Moment) {
    states[Int(key.rawValue)].onItsWay = nil
    statistics.confirmed += 1
    tell(
      .confirmed, of: command.change, for: key, collapsed: command.collapsed,
      attempt: command.attempt, at: now)
    refreshTarget(key)
  }

  private mutating func refused(_ key: KeyIndex, reason: String, at now: Moment) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay else { return }
    states[place].onItsWay = nil
    if !command.isEnded { fail(command, of: key, reason: reason, at: now) }
    refreshTarget(key)
  }

  mutating func fail(_ command: Outstanding, of key: KeyIndex, reason: String, at now: Moment) {
    statistics.failed += 1
    tell(
      .failed, of: command.change, for: key, collapsed: command.collapsed,
      attempt: command.attempt, reason: reason, at: now)
  }

  /// The connection ended before the answer: the newest value of the key goes again.
  private mutating func lost(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay else { return }
    states[place].onItsWay = nil
    guard !command.isEnded else { return refreshTarget(key) }
    if isAction(key) {
      fail(command, of: key, reason: "the connection to the broker was lost", at: now)
    } else if states[place].ready != nil || core.pending(key) != nil {
      tell(
        .superseded, of: command.change, for: key, collapsed: command.collapsed,
        attempt: command.attempt, reason: "newer value", at: now)
    } else {
      again(command, of: key, retries: command.retries)
    }
  }

  /// Puts a command back on its road for another attempt.
  mutating func again(_ command: Outstanding, of key: KeyIndex, retries: Int) {
    let place = Int(key.rawValue)
    states[place].onItsWay = nil
    states[place].ready = ReadyValue(
      change: command.change, collapsed: command.collapsed, attempt: command.attempt + 1,
      retries: retries, isUrgent: command.isUrgent, stamp: newStamp())
    readyCount += 1
  }
}
