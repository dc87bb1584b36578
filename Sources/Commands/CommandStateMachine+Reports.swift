// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// What is heard: the device's state, who is there, and time that has passed.
extension CommandStateMachine {
  /// Takes what a device reported for a property, as found on the wire.
  package mutating func reported(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    let place = Int(key.rawValue)
    devices[facts[place].device].mayRetry = true
    guard let value = registry.properties[place].property.value(fromWire: wire) else { return }
    let isNew = states[place].actual != value
    if isNew {
      states[place].actual = value
      states[place].changedAt = now
      note(key)
    }
    states[place].lastSent = nil
    let isByHand = resolve(value, wire, of: key, at: now)
    if isNew, isByHand { endOthersByHand(value, of: key, at: now) }
    refreshTarget(key)
    if !heldSteps.isEmpty { applyHeldSteps(to: key, at: now) }
  }

  /// What a report says about the command on its way: confirmed, interim, or a hand at the device.
  ///
  /// - Returns: Whether the report comes from somebody's hand, as far as this key can tell.
  private mutating func resolve(
    _ value: Value,
    _ wire: JSONValue,
    of key: KeyIndex,
    at now: Moment
  ) -> Bool {
    let place = Int(key.rawValue)
    if let ready = states[place].ready, ready.attempt > 1 {
      return resolve(repetition: ready, value, wire, of: key, at: now)
    }
    guard let command = states[place].onItsWay else {
      return resolve(arrival: states[place].arriving, value, wire, of: key)
    }
    guard !command.isEnded else { return false }
    if registry.properties[place].property.isShown(command.change.value, by: wire) {
      switch command.stage {
      case .sending: states[place].onItsWay?.isShown = true
      case .sent: confirm(key, command, at: now)
      }
      return false
    }
    guard !isInterim(value, to: command.change.value, place) else {
      // It may have shown the value, and shows it no more.
      states[place].onItsWay?.isShown = false
      return false
    }
    endOnItsWay(key, as: .superseded, reason: Self.changedByHand, at: now)
    states[place].approach.end()
    return true
  }

  /// Nothing is unconfirmed; the device may still be moving to what it acknowledged.
  private mutating func resolve(
    arrival: Value?,
    _ value: Value,
    _ wire: JSONValue,
    of key: KeyIndex
  ) -> Bool {
    let place = Int(key.rawValue)
    let isThere = arrival.map { registry.properties[place].property.isShown($0, by: wire) } ?? false
    if let arrival, !isThere, isInterim(value, to: arrival, place) { return false }
    states[place].arriving = nil
    states[place].approach.end()
    return !isThere
  }

  /// Takes the word of a device that it has taken a value; its state may follow.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay, !command.isEnded,
      registry.properties[place].property.isShown(command.change.value, by: wire)
    else { return }
    switch command.stage {
    case .sending: states[place].onItsWay?.isTaken = true
    case .sent: confirm(key, command, isShown: false, at: now)
    }
  }

  /// Takes a device's reply to the message with the number `message`; `problem` if it refuses.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay, !command.isEnded, command.message == message
    else { return }
    devices[facts[place].device].mayRetry = true
    let refusal = problem.map { "the device refused: \($0)" }
    switch (command.stage, refusal) {
    case (.sending, nil): states[place].onItsWay?.isTaken = true
    case (.sending, .some): states[place].onItsWay?.refusal = refusal
    case (.sent, nil): confirm(key, command, isShown: false, at: now)
    case (.sent, .some(let reason)): fail(key, command, reason: reason, at: now)
    }
  }

  /// A value waits to be sent once more: the attempt before may have arrived after all.
  private mutating func resolve(
    repetition ready: ReadyValue,
    _ value: Value,
    _ wire: JSONValue,
    of key: KeyIndex,
    at now: Moment
  ) -> Bool {
    let place = Int(key.rawValue)
    if registry.properties[place].property.isShown(ready.change.value, by: wire) {
      statistics.confirmed += 1
      states[place].approach.end()
      endReady(key, as: .confirmed, reason: nil, at: now)
      return false
    }
    guard !isInterim(value, to: ready.change.value, place) else { return false }
    dropRepetition(of: key, reason: Self.changedByHand, at: now)
    states[place].approach.end()
    return true
  }

  /// Ends the command on its way as confirmed: the device shows the value, or has said that it took
  /// it and may still be moving there.
  mutating func confirm(
    _ key: KeyIndex,
    _ command: Outstanding,
    isShown: Bool = true,
    at now: Moment
  ) {
    dropOnItsWay(key)
    if isShown {
      states[Int(key.rawValue)].approach.end()
    } else {
      states[Int(key.rawValue)].arriving = command.change.value
    }
    statistics.confirmed += 1
    tell(
      .confirmed,
      of: command.change,
      for: key,
      collapsed: command.collapsed,
      attempt: command.attempt,
      at: now
    )
    refreshTarget(key)
  }

  private static var changedByHand: String { "changed at the device" }

  private func isInterim(_ value: Value, to target: Value, _ place: Int) -> Bool {
    states[place].approach.includes(value, to: target, of: registry.properties[place].property)
  }

  /// Someone set an urgent value at the device: the commands it ends are over.
  private mutating func endOthersByHand(_ value: Value, of key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard facts[place].hasUrgent, !facts[place].ends.isEmpty,
      registry.properties[place].property.urgent.contains(value)
    else { return }
    for other in facts[place].ends {
      dropRepetition(of: other, reason: Self.changedByHand, at: now)
      endOnItsWay(other, as: .superseded, reason: Self.changedByHand, at: now)
      refreshTarget(other)
    }
  }

  // MARK: - Who is there

  /// The connection to the broker came or went.
  package mutating func connection(isUp: Bool, at now: Moment) {
    guard isUp != isConnected else { return }
    isConnected = isUp
    guard readyCount > 0 else { return }
    for place in states.indices where states[place].ready != nil {
      takeRoad(KeyIndex(Int32(place)), at: now)
    }
  }

  /// One of a device's availability sources spoke.
  package mutating func availability(
    ofDevice device: Int,
    source: Int,
    isOnline: Bool,
    at now: Moment
  ) {
    guard devices[device].said(isOnline, by: source) else { return }
    let waiting = registry.indices(ofDevice: device).filter { states[Int($0)].ready != nil }
    // They join their lane again in the order in which they were asked for.
    for raw in waiting.sorted(by: { number(ofReady: $0) < number(ofReady: $1) }) {
      takeRoad(KeyIndex(raw), at: now)
    }
  }

  private func number(ofReady raw: Int32) -> UInt64 {
    states[Int(raw)].ready?.change.number ?? 0
  }

  // MARK: - Time

  /// A deadline has passed, and is no longer set.
  mutating func passed(_ entry: DeadlineHeap.Entry, at now: Moment) {
    switch entry.kind {
    case .expiry:
      statistics.expired += 1
      endReady(entry.key, as: .expired, reason: offlineReason, at: now)
    case .confirmation: unconfirmed(entry.key, at: now)
    case .heldStep:
      refuseHeld(entry.key, reason: ValidationError.noBase.description, at: now)
    }
  }

  /// The device did not show the value in time: once more, unless something newer waits, or failed.
  private mutating func unconfirmed(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay,
      let confirmation = registry.properties[place].property.confirm
    else { preconditionFailure("A confirmation was awaited for nothing.") }
    let mayRetry =
      command.retries < confirmation.retries && devices[facts[place].device].mayRetry && !isClosing
    if !mayRetry {
      devices[facts[place].device].mayRetry = false
      let within = confirmation.within + command.transition
      fail(key, command, reason: "not confirmed within \(DurationText.text(within))", at: now)
    } else if hasNewer(key) {
      supersedeOnItsWay(key, command, at: now)
    } else {
      again(command, of: key, retries: command.retries + 1)
      takeRoad(key, at: now)
    }
  }
}
