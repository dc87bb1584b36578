// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// Reports of devices, availability, and the passage of time.
extension Model {
  mutating func reported(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    let place = Int(key.rawValue)
    hasReports = true
    keys[place].turns.reported(wire)
    devices[keys[place].device].mayRetry = true
    stateKnown(place)
    heardKeys.insert(place)
    // What the broker retains of a device that it says is offline is from before.
    let device = devices[keys[place].device]
    if retainedBy == nil || device.isOnline || device.heard.isEmpty { outdatedKeys.remove(place) }
    if retainedBy != nil { lanes.interrupted(device: keys[place].device) }
    guard let value = keys[place].property.value(fromWire: wire) else { return }
    let before = keys[place].actual
    let isNew = before != value
    keys[place].actual = value
    keys[place].lastSent = nil
    let isByHand = meaning(of: value, wire, after: before, place, at: now)
    if isNew, isByHand, keys[place].property.urgent.contains(value) {
      for other in keys[place].ends {
        dropRepetition(Int(other.rawValue), reason: "changed at the device")
        endFlight(Int(other.rawValue), as: .superseded, reason: "changed at the device")
      }
    }
    if !keys[place].held.isEmpty { applyHeld(place, at: now) }
  }

  /// Confirms, accepts as interim, or ends the command in flight; returns whether a user changed
  /// it.
  private mutating func meaning(
    of value: Value,
    _ wire: JSONValue,
    after before: Value?,
    _ place: Int,
    at now: Moment
  ) -> Bool {
    let key = keys[place]
    let isDriven = key.drivenUntil.map { now < $0 } ?? false
    if isDriven {
      keys[place].drivenUntil = now.advanced(by: key.property.confirm?.within ?? .seconds(5))
    }
    if let ready = key.ready, ready.attempt > 1 {
      if !isDriven, key.property.isShown(ready.value, by: wire) {
        keys[place].ready = nil
        keys[place].confirm(ready.value, at: now)
        lanes.interrupted(device: key.device)
        emit(.confirmed, ready, place)
        return false
      }
      if isDriven || isInterim(value, to: ready.value, place) {
        keys[place].move(value, from: before, to: ready.value, at: now)
        return false
      }
      dropRepetition(place, reason: "changed at the device")
      keys[place].drivenUntil = nil
      keys[place].becomeCertain()
      return true
    }
    guard let flight = key.flight else { return meaningAtRest(value, wire, before, place, at: now) }
    if flight.isEnded { return false }
    if key.property.isShown(flight.entry.value, by: wire) {
      if flight.isSending {
        keys[place].flight?.isShown = true
      } else {
        confirmed(flight, place, at: now)
      }
      return false
    }
    if isDriven && flight.isSending || isInterim(value, to: flight.entry.value, place) {
      // It reported the value, and no longer does.
      if !key.travels { keys[place].flight?.isShown = false }
      keys[place].move(value, from: before, to: flight.entry.value, at: now)
      return false
    }
    keys[place].drivenUntil = nil
    endFlight(place, as: .superseded, reason: "changed at the device")
    keys[place].becomeCertain()
    return true
  }

  /// The same while nothing is in flight: interim in the time of a key that travels.
  private mutating func meaningAtRest(
    _ value: Value,
    _ wire: JSONValue,
    _ before: Value?,
    _ place: Int,
    at now: Moment
  ) -> Bool {
    let key = keys[place]
    let isAtGoal = key.goal.map { key.property.isShown($0, by: wire) } ?? false
    let isOnItsWay = key.travels && key.isUncertain && !key.isStopped
    guard isOnItsWay, isAtGoal || isInterim(value, to: nil, place) else {
      keys[place].becomeCertain()
      return true
    }
    keys[place].move(value, from: before, to: key.goal ?? key.aim, at: now)
    return false
  }

  /// Whether a device may report `value` in transition from its last value, through everything that
  /// was sent since, to `target`.
  private func isInterim(_ value: Value, to target: Value?, _ place: Int) -> Bool {
    let key = keys[place]
    guard let start = key.start else { return true }
    if key.property.isSameOnWire(start, value) { return true }
    if let last = key.passed.last, key.property.isSameOnWire(last, value) { return true }
    guard case .number(let number) = value else { return false }
    var least = Double.infinity
    var greatest = -Double.infinity
    for case .number(let one)? in key.passed.map(Optional.some) + [start, target] {
      least = min(least, one)
      greatest = max(greatest, one)
    }
    return least <= number && number <= greatest
  }

  // MARK: - Availability

  mutating func connection(isUp: Bool, at now: Moment) {
    isConnected = isUp
    retainedBy = isUp ? now.advanced(by: .seconds(2)) : nil
    heardKeys = []
    for device in devices.indices { devices[device].heard = [] }
    renewRequests(at: now)
    for place in places { failIfActionIsOffline(place) }
  }

  mutating func availability(ofDevice device: Int, source: Int, isOnline: Bool) {
    devices[device].sources[source] = isOnline
    devices[device].heard.insert(source)
    if !isOnline {
      for place in places where keys[place].device == device && keys[place].property.state != nil {
        outdatedKeys.insert(place)
      }
    }
    lanes.interrupted(device: device)
    for place in places where keys[place].device == device { failIfActionIsOffline(place) }
  }

  /// The broker has sent what it retains.
  mutating func retainedCompleted() {
    retainedBy = nil
    for device in devices.indices { lanes.interrupted(device: device) }
  }

  // MARK: - Time

  enum Deadline {
    case expiry
    case confirmation
    case held
    case rest
  }

  /// The deadlines of a key behind the queue.
  func deadlines(of place: Int) -> [(at: Moment, kind: Deadline)] {
    var found: [(at: Moment, kind: Deadline)] = []
    let key = keys[place]
    if let ready = key.ready, !isOnline(place) || awaitsRetained(place) {
      found.append((ready.expiresAt, .expiry))
    }
    if let by = key.flight?.confirmBy { found.append((by, .confirmation)) }
    if let at = key.restsAt { found.append((at, .rest)) }
    if !key.held.isEmpty { found.append((key.heldUntil, .held)) }
    return found
  }

  /// Performs everything that is due; `emitted` decides the order within one instant.
  mutating func advance(to now: Moment, emitted: [CommandEvent]) {
    lanes.windows.advance(to: now)
    for place in places where keys[place].queued != nil && keys[place].due <= now {
      settle(place, at: now)
    }
    while true {
      let next = nextDue(at: now, emitted: emitted)
      if let end = retainedBy, end <= now, next.map({ $0.at > end }) ?? true {
        retainedCompleted()
      } else if let next {
        passed(next.kind, next.place, at: now)
      } else {
        return
      }
    }
  }

  private func nextDue(
    at now: Moment,
    emitted: [CommandEvent]
  ) -> (at: Moment, place: Int, kind: Deadline)? {
    var best: (at: Moment, rank: Int, place: Int, kind: Deadline)?
    for place in places {
      for deadline in deadlines(of: place) where deadline.at <= now {
        let rank = rank(of: place, deadline.kind, emitted)
        if let best, (best.at, best.rank) <= (deadline.at, rank) { continue }
        best = (deadline.at, rank, place, deadline.kind)
      }
    }
    return best.map { ($0.at, $0.place, $0.kind) }
  }

  /// The position of the end of a key's command among the emitted events; a repeated command has no
  /// event and is first.
  private func rank(of place: Int, _ kind: Deadline, _ emitted: [CommandEvent]) -> Int {
    guard kind == .confirmation, let number = keys[place].flight?.entry.number else { return 0 }
    let found = emitted.firstIndex {
      $0.number == number && ($0.phase == .failed || $0.phase == .superseded)
    }
    return found.map { $0 + 1 } ?? 0
  }

  private mutating func passed(_ kind: Deadline, _ place: Int, at now: Moment) {
    switch kind {
    case .expiry:
      let isUnknown = isOnline(place)
      guard let ready = keys[place].takeReady() else { return }
      if keys[place].newest == ready.number { keys[place].overridden = nil }
      let reason = isUnknown ? "the device's availability is not known yet" : offlineReason
      emit(.expired, ready, place, reason: reason)
    case .confirmation: unconfirmed(place)
    case .rest: rest(place, at: now)
    case .held:
      let held = keys[place].held
      keys[place].held = []
      for step in held {
        emit(.rejected, held: step, place, reason: ValidationError.noBase.description)
      }
    }
  }

  /// The device is at rest, unless its reports may still be about a command that waits to be
  /// repeated.
  private mutating func rest(_ place: Int, at now: Moment) {
    if let ready = keys[place].ready, ready.attempt > 1 {
      keys[place].progressAt = nil
      keys[place].begunAt = now
    } else {
      if keys[place].goal != nil, keys[place].goal != keys[place].actual { restsElsewhere += 1 }
      keys[place].becomeCertain()
    }
  }

  private mutating func unconfirmed(_ place: Int) {
    guard var flight = keys[place].flight, let confirm = keys[place].property.confirm else {
      return
    }
    let device = keys[place].device
    if flight.entry.retries >= confirm.retries || !devices[device].mayRetry || isClosing
      || flight.isOvertaken
    {
      devices[device].mayRetry = false
      fail(
        flight,
        place,
        reason: "not confirmed within \(DurationText.text(confirm.within + flight.grace))"
      )
    } else if keys[place].hasNewer {
      supersede(flight, place)
    } else {
      flight.entry.retries += 1
      again(flight, place)
    }
  }
}
