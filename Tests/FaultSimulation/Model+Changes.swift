// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

/// Requests of clients.
extension Model {
  /// Predicts the effect of a change; returns the error to refuse it with, if any.
  mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    _ options: Options,
    at now: Moment
  ) -> ValidationError? {
    guard !isClosing else { return .shuttingDown }
    let place = Int(key.rawValue)
    do throws(ValidationError) {
      guard let value = try value(after: change, place) else {
        try hold(change, place, options, at: now)
        return nil
      }
      try accept(value, place, options, at: now)
      return nil
    } catch {
      return error
    }
  }

  /// The base of steps.
  func base(_ place: Int) -> Value? {
    keys[place].isGroup ? nil : keys[place].target
  }

  private func value(
    after change: ValueChange,
    _ place: Int
  ) throws(ValidationError) -> Value? {
    switch change {
    case .set(let value): return value
    case .step(let amount):
      guard let base = base(place) else { return nil }
      return try keys[place].property.stepped(from: base, by: amount)
    case .toggle:
      guard let base = base(place) else { return nil }
      return try keys[place].property.toggled(from: base)
    }
  }

  private mutating func hold(
    _ change: ValueChange,
    _ place: Int,
    _ options: Options,
    at now: Moment
  ) throws(ValidationError) {
    // A type without such a change is refused first.
    switch change {
    case .set: break
    case .step(let amount): _ = try keys[place].property.stepped(from: .number(0), by: amount)
    case .toggle: _ = try keys[place].property.toggled(from: .boolean(true))
    }
    guard keys[place].property.state?.get != nil, isConnected else { throw .noBase }
    if keys[place].held.isEmpty {
      guard hasRoom(place) else { throw .tooManyPending(limit: pendingLimit) }
      needState(place)
      keys[place].heldUntil = now.advanced(by: patience)
    }
    lastNumber += 1
    keys[place].held.append(.init(change: change, number: lastNumber, options: options))
  }

  private func hasRoom(_ place: Int) -> Bool {
    queuedCount + readyCount + keys.count { !$0.held.isEmpty } < pendingLimit
      || keys[place].hasNewer
  }

  private mutating func accept(
    _ value: Value,
    _ place: Int,
    _ options: Options,
    at now: Moment
  ) throws(ValidationError) {
    let isUrgent = keys[place].property.urgent.contains(value)
    guard isUrgent || hasRoom(place) else { throw .tooManyPending(limit: pendingLimit) }
    let isAction = keys[place].isAction
    if isAction, !isUrgent, keys[place].ready != nil, keys[place].behind.count >= 31 {
      throw .tooManyActions(registry.properties[place].key, limit: 32)
    }
    lastNumber += 1
    var entry = KeyModel.Entry(
      number: lastNumber,
      value: value,
      expiresAt: now.advanced(by: options.ttl ?? keys[place].property.ttl),
      caller: options.caller,
      transition: options.transition
    )
    entry.group = options.group
    emit(.accepted, entry, place)
    if isUrgent {
      for other in [place] + keys[place].ends.map({ Int($0.rawValue) }) {
        let isReplaced = isAction && other == place
        endWaiting(other, as: isReplaced ? .superseded : .cancelled, reason: "urgent")
        endFlight(other, as: .cancelled, reason: "urgent")
      }
      dropExcluded(by: place)
      keys[place].intervalEnd = now.advanced(by: keys[place].property.policy.minInterval)
      entry.isUrgent = true
      makeReady(entry, place)
    } else if isAction {
      dropExcluded(by: place)
      makeReady(entry, place)
    } else {
      enqueue(entry, place, wait: options.wait, at: now)
      if options.skipsQuiet, options.wait == nil { flush(place, at: now) }
    }
  }

  private mutating func enqueue(
    _ entry: KeyModel.Entry,
    _ place: Int,
    wait: Duration?,
    at now: Moment
  ) {
    endHeld(place, as: .superseded, reason: "newer value")
    var policy = keys[place].property.policy
    if let wait {
      policy.delay = wait
      policy.leading = false
    }
    let span = policy.maxWait.map { max($0, policy.delay) }
    // A zero delay collapses one batch: its burst lasts for its instant.
    let hasEnded = keys[place].isInstant ? keys[place].quietEnd < now : keys[place].quietEnd <= now
    keys[place].isInstant = policy.delay == .zero
    let isFirst = !keys[place].isBurstOpen || hasEnded
    if isFirst {
      keys[place].isBurstOpen = true
      keys[place].base = now
    }
    keys[place].quietEnd = now.advanced(by: policy.delay)
    keys[place].due = keys[place].quietEnd
    if let span { keys[place].due = min(keys[place].due, keys[place].base.advanced(by: span)) }
    var entry = entry
    if let replaced = keys[place].queued {
      emit(.superseded, replaced, place, reason: "newer value")
      entry.collapsed = replaced.collapsed + 1
    }
    keys[place].queued = entry
    if keys[place].ready?.isUrgent == true, keys[place].heir == nil {
      keys[place].heir = entry.number
    }
    dropRepetition(place, reason: "newer value")
    dropExcluded(by: place)
    if keys[place].isLeadingHeld || isFirst && policy.leading { keys[place].due = now }
    if keys[place].due < keys[place].intervalEnd {
      keys[place].isLeadingHeld = keys[place].isLeadingHeld || isFirst && policy.leading
      keys[place].due = keys[place].intervalEnd
    } else if isFirst, policy.leading {
      settle(place, at: now)
    }
  }

  mutating func dropExcluded(by place: Int, where isEnded: (Int) -> Bool = { _ in true }) {
    let reason = "replaced by \(keys[place].property.id)"
    for other in keys[place].excluded where isEnded(Int(other.rawValue)) {
      endWaiting(Int(other.rawValue), as: .superseded, reason: reason)
      endFlight(Int(other.rawValue), as: .superseded, reason: reason)
    }
  }

  /// A value that waits to be repeated must not follow a newer one.
  mutating func dropRepetition(_ place: Int, reason: String) {
    guard let ready = keys[place].ready, ready.attempt > 1 else { return }
    keys[place].ready = nil
    keys[place].pass(ready.value)
    lanes.interrupted(device: keys[place].device)
    emit(.superseded, ready, place, reason: reason)
  }

  @discardableResult
  private mutating func endHeld(_ place: Int, as phase: Phase, reason: String?) -> Bool {
    let held = keys[place].held
    keys[place].held = []
    for step in held { emit(phase, held: step, place, reason: reason) }
    return !held.isEmpty
  }

  @discardableResult
  mutating func endWaiting(
    _ place: Int,
    as phase: Phase,
    reason: String?,
    exceptUrgent: Bool = false
  ) -> Bool {
    var hasEnded = endHeld(place, as: phase, reason: reason)
    keys[place].isBurstOpen = false
    keys[place].isLeadingHeld = false
    if !exceptUrgent { keys[place].overridden = nil }
    if let queued = keys[place].queued {
      keys[place].queued = nil
      hasEnded = true
      emit(phase, queued, place, reason: reason)
    }
    while !(exceptUrgent && keys[place].ready?.isUrgent ?? false),
      let ready = keys[place].takeReady()
    {
      hasEnded = true
      lanes.interrupted(device: keys[place].device)
      emit(phase, ready, place, reason: reason)
    }
    return hasEnded
  }

  mutating func endFlight(_ place: Int, as phase: Phase, reason: String?) {
    keys[place].stop()
    guard let flight = keys[place].flight, !flight.isEnded else { return }
    lanes.windows.ended(.key(place))
    if flight.isSending {
      keys[place].flight?.isEnded = true
    } else {
      keys[place].flight = nil
    }
    keys[place].pass(flight.entry.value)
    emit(phase, flight.entry, place, reason: reason)
  }

  mutating func cancel(_ key: KeyIndex) -> Bool {
    let places = groups[Int(key.rawValue)] ?? [Int(key.rawValue)]
    return places.count { endWaiting($0, as: .cancelled, reason: nil) } > 0
  }

  /// Ends the quiet period of a key, or of each member of a group.
  mutating func flush(_ key: KeyIndex, at now: Moment) -> Bool {
    let places = groups[Int(key.rawValue)] ?? [Int(key.rawValue)]
    return places.count { flush($0, at: now) } > 0
  }

  @discardableResult
  mutating func flush(_ place: Int, at now: Moment) -> Bool {
    guard keys[place].queued != nil else { return false }
    settle(place, at: now)
    return true
  }

  mutating func close(at now: Moment) {
    isClosing = true
    for place in places {
      endHeld(place, as: .rejected, reason: ValidationError.shuttingDown.description)
      flush(place, at: now)
    }
  }

  /// Applies the steps that waited for the state, in order.
  mutating func applyHeld(_ place: Int, at now: Moment) {
    let held = keys[place].held
    keys[place].held = []
    for step in held {
      do throws(ValidationError) {
        guard let value = try value(after: step.change, place) else { throw .noBase }
        try accept(value, place, step.options, at: now)
      } catch {
        emit(.rejected, held: step, place, reason: error.description)
      }
    }
  }
}
