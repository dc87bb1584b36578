// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// What is heard: the device's state, who is there, and time that has passed.
extension CommandStateMachine {
  /// Takes what a device reported for a property, as found on the wire.
  package mutating func reported(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    let place = Int(key.rawValue)
    let property = property(key)
    guard let value = property.value(fromWire: wire) else { return }
    devices[deviceNumber(key)].mayRetry = true
    let before = states[place].actual
    if before != value {
      states[place].actual = value
      states[place].changedAt = now
      changedKeys.append(key)
    }
    if property.urgent.contains(value), before != value { endedByHand(key, at: now) }
    resolve(value, wire, of: key, at: now)
    refreshTarget(key)
    applyHeldSteps(to: key, at: now)
  }

  /// What a report says about the command on its way: confirmed, interim, or a hand at the device.
  private mutating func resolve(
    _ value: Value, _ wire: JSONValue, of key: KeyIndex, at now: Moment
  ) {
    let place = Int(key.rawValue)
    let property = property(key)
    if let ready = states[place].ready, ready.attempt > 1,
      property.isShown(ready.change.value, by: wire)
    {
      // The attempt before arrived after all; there is nothing to try again.
      statistics.confirmed += 1
      return endWaitingReady(key, as: .confirmed, reason: nil, at: now)
    }
    guard let command = states[place].onItsWay, !command.isEnded else { return }
    if property.isShown(command.change.value, by: wire) {
      switch command.stage {
      case .sending: states[place].onItsWay?.isShown = true
      case .sent: confirm(key, command, at: now)
      }
    } else if !isInterim(value, of: property, command) {
      endOnItsWay(key, as: .superseded, reason: "changed at the device", at: now)
    }
  }

  /// Whether a report lies between the value before the command and its target.
  private func isInterim(_ value: Value, of property: Property, _ command: Outstanding) -> Bool {
    guard let before = command.before else { return true }
    if property.isSameOnWire(before, value) { return true }
    guard case .number(let from) = before, case .number(let to) = command.change.value,
      case .number(let reported) = value
    else { return false }
    return min(from, to) <= reported && reported <= max(from, to)
  }

  /// Someone set an urgent value at the device: the commands it ends are over.
  private mutating func endedByHand(_ key: KeyIndex, at now: Moment) {
    let ends = property(key).ends
    guard !ends.isEmpty else { return }
    for raw in registry.indices(ofDevice: deviceNumber(key)) where raw != key.rawValue {
      let other = KeyIndex(raw)
      guard ends.contains(property(other).id) else { continue }
      endOnItsWay(other, as: .superseded, reason: "changed at the device", at: now)
      refreshTarget(other)
    }
  }

  /// Steps that waited for the state are applied to it.
  private mutating func applyHeldSteps(to key: KeyIndex, at now: Moment) {
    guard let held = heldSteps.removeValue(forKey: key) else { return }
    for move in held.moves {
      let change: Change =
        switch move {
        case .step(let amount): .step(amount)
        case .toggle: .toggle
        }
      do throws(ValidationError) {
        try self.change(change, of: key, at: now, origin: held.origin)
      } catch {
        tellHeld(held, of: key, as: .rejected, reason: error.description, at: now)
      }
    }
  }

  /// The connection to the broker came or went.
  package mutating func connection(isUp: Bool, at now: Moment) {
    guard isUp != isConnected else { return }
    isConnected = isUp
    guard !isUp else { return }
    for raw in states.indices where states[raw].ready != nil {
      wentOffline(KeyIndex(Int32(raw)), at: now)
    }
  }

  /// One of a device's availability sources spoke; `nil` when what it said means nothing.
  package mutating func availability(
    ofDevice device: Int, source: Int, isOnline: Bool, at now: Moment
  ) {
    let wasOnline = devices[device].isOnline
    devices[device].sources[source] = isOnline
    guard devices[device].isOnline != wasOnline else { return }
    for raw in registry.indices(ofDevice: device) where states[Int(raw)].ready != nil {
      if wasOnline {
        wentOffline(KeyIndex(raw), at: now)
      } else {
        takeRoad(KeyIndex(raw), at: now)
      }
    }
  }

  /// A ready value begins to wait for an absent party: its time to live counts.
  private mutating func wentOffline(_ key: KeyIndex, at now: Moment) {
    guard let ready = states[Int(key.rawValue)].ready else { return }
    if isAction(key) { return failReady(key, reason: offlineReason(key), at: now) }
    deadlines.insert(
      .init(at: expiry(of: ready.change, key), key: key, kind: .expiry, stamp: ready.stamp))
  }

  /// Whether a deadline still belongs to something.
  func isAlive(_ entry: DeadlineHeap.Entry) -> Bool {
    let state = states[Int(entry.key.rawValue)]
    switch entry.kind {
    case .expiry: return state.ready?.stamp == entry.stamp && !isOnline(entry.key)
    case .confirmation: return state.onItsWay?.stamp == entry.stamp
    case .heldStep: return heldSteps[entry.key]?.stamp == entry.stamp
    }
  }

  /// A deadline has passed.
  mutating func passed(_ entry: DeadlineHeap.Entry, at now: Moment) {
    let key = entry.key
    switch entry.kind {
    case .expiry:
      statistics.expired += 1
      endWaitingReady(key, as: .expired, reason: offlineReason(key), at: now)
    case .confirmation: unconfirmed(key, at: now)
    case .heldStep:
      guard let held = heldSteps.removeValue(forKey: key) else { return }
      tellHeld(
        held, of: key, as: .rejected, reason: ValidationError.noBase.description, at: now)
    }
  }

  /// The device did not show the value in time: once more with the newest value, or failed.
  private mutating func unconfirmed(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard let command = states[place].onItsWay, let confirm = property(key).confirm else { return }
    let isReplaced = states[place].ready != nil || core.pending(key) != nil
    if !isReplaced, command.retries < confirm.retries, devices[deviceNumber(key)].mayRetry,
      !isClosing
    {
      again(command, of: key, retries: command.retries + 1)
      takeRoad(key, at: now)
    } else {
      states[place].onItsWay = nil
      devices[deviceNumber(key)].mayRetry = false
      fail(command, of: key, reason: "not confirmed within \(confirm.within)", at: now)
      refreshTarget(key)
    }
  }
}
