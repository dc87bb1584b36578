// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// What can be asked without changing anything.
extension CommandStateMachine {
  /// A key's values and where its newest command stands.
  package struct Status: Sendable {
    package var target: Value?
    package var actual: Value?
    package var phase: Phase?
    /// When ``phase`` or ``actual`` last changed; `nil` if never.
    package var since: Moment?
  }

  /// What a pending value waits for.
  package enum Waiting: String, Sendable {
    case quiet
    case lane
    case inFlight = "in_flight"
    case offline
  }

  /// One pending entry.
  package struct PendingStatus: Sendable {
    package var key: KeyIndex
    package var value: Value
    package var collapsed: Int
    package var waits: Waiting
    /// When it leaves, as far as that is known; of a value that waits for an absent party, when it
    /// expires.
    package var due: Moment?
  }

  package func status(_ key: KeyIndex) -> Status {
    let place = Int(key.rawValue)
    return Status(
      target: states[place].target,
      actual: states[place].actual,
      phase: states[place].phase,
      since: states[place].changedAt
    )
  }

  /// What was asked of a key last.
  package func target(of key: KeyIndex) -> Value? { states[Int(key.rawValue)].target }

  /// Whether what was asked of a key has changed since this was asked last.
  package mutating func takeNewTarget(of key: KeyIndex) -> Bool {
    guard states[Int(key.rawValue)].hasNewTarget else { return false }
    states[Int(key.rawValue)].hasNewTarget = false
    return true
  }

  /// Whether a device counts as there; one that has said nothing does.
  package func isDeviceOnline(_ device: Int) -> Bool { devices[device].isOnline }

  /// What waits for those of `keys` that have something waiting.
  ///
  /// Of a value in a lane, ``PendingStatus/due`` is when its token comes, if no urgent value goes
  /// ahead of it and none in its lane is taken back. Costs time in proportion to the keys and to
  /// everything that waits in lanes.
  package func pendingStatuses(of keys: [KeyIndex], at now: Moment) -> [PendingStatus] {
    let departures = laneDepartures(after: now)
    return keys.compactMap { key in
      guard var status = pendingStatus(key) else { return nil }
      if status.waits == .lane { status.due = departures[key] }
      return status
    }
  }

  /// When everything in a lane gets its token, as things stand; empty without a connection.
  private func laneDepartures(after now: Moment) -> [KeyIndex: Moment] {
    guard isConnected, lanes.count > 0 else { return [:] }
    return lanes.departures(after: now, ignoresLimits: isClosing) { companions(of: $0) }
  }

  /// What leaves in the same message as `key`, beside values that are not quiet yet.
  private func companions(of key: KeyIndex) -> [KeyIndex] {
    let device = facts[Int(key.rawValue)].device
    let lead = registry.properties[Int(key.rawValue)].property.command
    guard registry.devices[device].merge, lead.payload.isObject, !isAction(key) else { return [] }
    return registry.indices(ofDevice: device).map { KeyIndex($0) }.filter {
      $0 != key && states[Int($0.rawValue)].ready != nil && !isSending($0) && !isAction($0)
        && !states[Int($0.rawValue)].isWithheld && shares(lead, $0)
    }
  }

  /// What waits for `key`, the newest value; `nil` when nothing does.
  ///
  /// In constant time, and so without the time at which a lane lets it go.
  package func pendingStatus(_ key: KeyIndex) -> PendingStatus? {
    let ready = states[Int(key.rawValue)].ready
    if let pending = core.pending(key) {
      return PendingStatus(
        key: key,
        value: pending.value.value,
        collapsed: pending.collapsed + (ready.map { $0.collapsed + 1 } ?? 0),
        waits: .quiet,
        due: pending.due
      )
    }
    guard let ready else { return nil }
    let waits: Waiting = !isOnline(key) ? .offline : isSending(key) ? .inFlight : .lane
    return PendingStatus(
      key: key,
      value: ready.change.value,
      collapsed: ready.collapsed,
      waits: waits,
      due: waits == .offline ? ready.change.expiresAt : nil
    )
  }

  /// How many values wait, in the queue or behind it.
  package var pendingCount: Int { core.pendingCount + readyCount }

  /// Whether everything that can leave has left and was answered.
  package var isDrained: Bool { sendingCount == 0 && core.pendingCount == 0 && lanes.count == 0 }

  /// Whether anything is to leave as soon as its lane and the client have room; constant time.
  package var hasReady: Bool { lanes.count > 0 }

  /// Whether anything has not been acknowledged, what cannot leave included; constant time.
  package var hasUnsent: Bool {
    sendingCount > 0 || readyCount > 0 || core.pendingCount > 0 || !heldSteps.isEmpty
  }

  /// The keys whose value has not been acknowledged, in order of definition; empty at once when
  /// there are none, else in proportion to all keys.
  package func unsentKeys() -> [KeyIndex] {
    guard hasUnsent else { return [] }
    var keys: [KeyIndex] = []
    for place in states.indices where isUnsent(KeyIndex(Int32(place))) {
      keys.append(KeyIndex(Int32(place)))
    }
    return keys
  }

  private func isUnsent(_ key: KeyIndex) -> Bool {
    let place = Int(key.rawValue)
    if states[place].ready != nil || core.isPending(key) || heldSteps[key] != nil { return true }
    return isSending(key) && states[place].onItsWay?.isEnded == false
  }
}
