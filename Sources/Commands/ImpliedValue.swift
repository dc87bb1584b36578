// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// What a property takes when a value of another one is sent, see ``Property/implies``: a
/// brightness turns its lamp on.
struct ImpliedValue {
  /// The other key of the two.
  let key: KeyIndex
  /// What all values imply but the number 0, which implies the opposite.
  let value: Value

  /// What `sent` makes the implied property take; `nil` if that is anything but ``value``.
  func implied(by sent: Value) -> Value? {
    guard sent == .number(0) else { return value }
    if case .boolean(let isOn) = value { return .boolean(!isOn) }
    return nil
  }

  /// Whether the implied property can have `stated` once `sent` has been sent.
  func agrees(_ sent: Value, with stated: Value) -> Bool {
    sent == .number(0) ? stated != value : stated == value
  }
}

/// Rules between properties of which a value of one makes another one take a value.
extension CommandStateMachine {
  /// Ends the commands that contradict a new value of `key` by what one of them implies.
  ///
  /// It does not matter what they wait for. Those of the same change ride with it, or it `rides`
  /// with them. Of `keys` alone, if given.
  mutating func endContradicting(
    _ value: Value,
    of key: KeyIndex,
    rides: Bool = false,
    among keys: [KeyIndex]? = nil,
    at now: Moment
  ) {
    guard facts[key].hasImplications else { return }
    let cause = (value, key)
    /// Ends the command of a key that implies a wrong value, unless it is of the same change.
    func endImplying(_ other: ImpliedValue, where isWrong: (Value) -> Bool) {
      guard keys?.contains(other.key) ?? true else { return }
      end(other.key, by: cause, at: now) { change in
        !(change.rides && change.acceptedAt == now) && isWrong(change.value)
      }
    }
    for other in relations[key].implying {
      if other.value != value, keys?.contains(other.key) ?? true {
        endSteps(of: other.key, by: cause, at: now)
      }
      endImplying(other) { !other.agrees($0, with: value) }
    }
    for other in relations[key].implied where keys?.contains(other.key) ?? true {
      endSteps(of: other.key, by: cause, at: now)
      end(other.key, by: cause, at: now) { !other.agrees(value, with: $0.value) }
      guard !rides else { continue }
      // A brightness of 0 turns off the lamp that an older color would turn on.
      let made = other.implied(by: value)
      for sibling in relations[other.key].implying where sibling.key != key {
        endImplying(sibling) { sibling.implied(by: $0) != made }
      }
    }
  }

  /// The other keys of which nothing older may follow a value of `key`.
  ///
  /// A command that one has after the value was accepted agrees with it, or is sent with it. A value
  /// that most others imply contradicts only the number 0.
  func contradicted(by value: Value, of key: KeyIndex, isAccepted: Bool) -> [Rival] {
    let own = relations[key]
    var rivals = own.implying.map { Rival(key: $0.key, isUrgentOnly: $0.value == value) }
    for implied in hasRiding(key) ? [] : own.implied {
      rivals.append(Rival(key: implied.key))
      for sibling in relations[implied.key].implying where sibling.key != key {
        rivals.append(
          Rival(key: sibling.key, isUrgentOnly: sibling.value == implied.implied(by: value))
        )
      }
    }
    for place in rivals.indices where isAccepted {
      rivals[place].agrees = hasCommand(rivals[place].key)
    }
    return rivals
  }

  /// Ends steps that wait for the state of `key`, whatever value they would result in.
  private mutating func endSteps(
    of key: KeyIndex,
    by cause: (value: Value, key: KeyIndex),
    at now: Moment
  ) {
    guard waitingSteps.contains(key) else { return }
    let reason = name(cause.value, of: cause.key)
    waitingSteps.end(key, as: .superseded, reason: reason, in: &log, at: now)
  }

  /// Someone set a value at the device: commands that imply otherwise are not repeated, and those
  /// that are held for the device have ended.
  mutating func endContradictingByHand(_ value: Value, of key: KeyIndex, at now: Moment) {
    for other in relations[key].implying {
      endHeld(other, contradicting: value, at: now)
    }
  }

  /// The places of one change's values in an order in which a stated value wins over one that
  /// others imply, and which of them contradict one: those are sent in its message or not at all.
  package func stating(
    _ values: [(key: KeyIndex, value: Value)]
  ) -> [(place: Int, rides: Bool)] {
    var implying: [(place: Int, rides: Bool)] = []
    var others: [(place: Int, rides: Bool)] = []
    for (place, (key, value)) in values.enumerated() {
      let implied = relations[sample(of: key)].implied
      guard !implied.isEmpty else {
        others.append((place, false))
        continue
      }
      let rides = implied.contains { implied in
        values.contains {
          sample(of: $0.key) == implied.key && !implied.agrees(value, with: $0.value)
        }
      }
      implying.append((place, rides))
    }
    return implying + others
  }

  /// A group's key has no relations; its members' have the same.
  private func sample(of key: KeyIndex) -> KeyIndex {
    isGroup(key) ? registry.groups.members(of: key).first ?? key : key
  }
}

extension CommandStateMachine {
  /// A value with the name of its property, such as `power off`.
  func name(_ value: Value, of key: KeyIndex) -> String {
    let text = if case .boolean(let isOn) = value { isOn ? "on" : "off" } else { value.bareText }
    return "\(registry.definition(of: key).property.id) \(text)"
  }

  /// What a command that waits or is in flight makes `key` take; the newest wins.
  func implication(of key: KeyIndex) -> Value? {
    var newest: (number: UInt64, value: Value?)?
    for other in relations[key].implying {
      guard let change = queue.pending(other.key)?.value ?? sendQueue[other.key]?.change,
        !change.rides, change.number >= newest?.number ?? 0
      else { continue }
      newest = (change.number, other.implied(by: change.value))
    }
    return newest?.value ?? (isBeingImplied(key) ? deliveries[key].implied : nil)
  }

  /// Whether the device shows what a value of `key` implies.
  func showsImplied(by value: Value, of key: KeyIndex) -> Bool {
    relations[key].implied.allSatisfy { other in
      // What was never reported contradicts nothing.
      guard let implied = other.implied(by: value), deliveries[other.key].reception.isHeard else {
        return true
      }
      return deliveries[other.key].shows(implied, registry.definition(of: other.key).property)
    }
  }

  /// Whether a command that contradicts the one of `key` waits to be sent with it.
  func hasRider(_ key: KeyIndex) -> Bool { relations[key].implying.contains { hasRiding($0.key) } }

  /// Whether the newest command of `key` waits to be sent with one that it contradicts.
  func hasRiding(_ key: KeyIndex) -> Bool {
    queue.pending(key)?.value.rides ?? sendQueue[key]?.change.rides ?? false
  }

  /// Whether a command of `key` waits or is in flight.
  func hasCommand(_ key: KeyIndex) -> Bool {
    if queue.isPending(key) || sendQueue.hasCommand(key) { return true }
    return deliveries[key].inFlight.map { !$0.isEnded } ?? false
  }

  /// A command of `key` is ready: what rides with it, and waits for quiet, becomes ready too.
  mutating func makeRidersReady(of key: KeyIndex, at now: Moment) {
    let companions = relations[key].mergeGroup
    for other in relations[key].implying {
      guard let rider = queue.pending(other.key)?.value, rider.rides,
        companions.contains(other.key)
      else { continue }
      flush(other.key, at: now)
    }
  }

  /// A command of `key` was sent, or has ended: what was to ride with it, and has not, ends.
  mutating func endRiders(of key: KeyIndex, with command: Command, at now: Moment) {
    for other in relations[key].implying {
      endWaiting(other.key, by: (command.value, key), at: now) {
        $0.rides && $0.number < command.change.number
      }
    }
  }

  /// Records what the commands of a message make other properties take.
  mutating func imply(by keys: [KeyIndex], _ commands: [Command], at now: Moment) {
    for (key, command) in zip(keys, commands) where facts[key].hasImplications {
      for other in relations[key].implied where !keys.contains(other.key) {
        guard let value = other.implied(by: command.value) else { continue }
        deliveries.update(other.key) { $0.imply(value) }
      }
      endRiders(of: key, with: command, at: now)
    }
  }

  /// Whether a command that was sent may still make `key` take a value.
  func isBeingImplied(_ key: KeyIndex) -> Bool {
    facts[key].hasImplications
      && relations[key].implying.contains { deliveries[$0.key].inFlight != nil }
  }

  /// Ends the commands of `key` that `isOver` chooses, in flight or not; most changes end none, so
  /// the reason is put into words only where one ends.
  fileprivate mutating func end(
    _ key: KeyIndex,
    by cause: (value: Value, key: KeyIndex),
    at now: Moment,
    where isOver: (PendingChange) -> Bool
  ) {
    if let flight = deliveries[key].inFlight, isOver(flight.command.change) {
      abandon(key, as: .superseded, reason: name(cause.value, of: cause.key), at: now)
    }
    endWaiting(key, by: cause, at: now, where: isOver)
  }

  private mutating func endWaiting(
    _ key: KeyIndex,
    by cause: (value: Value, key: KeyIndex),
    at now: Moment,
    where isOver: (PendingChange) -> Bool
  ) {
    if let pending = queue.pending(key)?.value, isOver(pending) {
      let reason = name(cause.value, of: cause.key)
      endPending(key, as: .superseded, reason: reason, at: now)
      refreshTarget(key)
    }
    if let waiting = sendQueue[key], isOver(waiting.change) {
      let reason = name(cause.value, of: cause.key)
      endWaitingCommand(of: key, as: .superseded, reason: reason, at: now)
    }
  }

  fileprivate mutating func endHeld(
    _ other: ImpliedValue,
    contradicting value: Value,
    at now: Moment
  ) {
    let key = other.key
    if let command = sendQueue[key], !other.agrees(command.value, with: value),
      command.isRepeated || !sendQueue.isOnline(key) || sendQueue.isAsleep(key)
    {
      deliveries.update(key) { $0.abandonRepetition(of: command.value) }
      endWaitingCommand(of: key, as: .superseded, reason: Delivery.changedByHand, at: now)
    }
    if let flight = deliveries[key].inFlight, !other.agrees(flight.command.value, with: value) {
      deliveries.update(key) { $0.overtake() }
    }
  }
}
