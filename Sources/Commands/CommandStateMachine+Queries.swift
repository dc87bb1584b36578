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
    /// When it leaves or expires, as far as that is known.
    package var due: Moment?
  }

  package func status(_ key: KeyIndex) -> Status {
    let state = states[Int(key.rawValue)]
    return Status(
      target: state.target, actual: state.actual, phase: state.phase, since: state.changedAt)
  }

  /// What waits for `key`, the newest value; `nil` when nothing does.
  package func pendingStatus(_ key: KeyIndex) -> PendingStatus? {
    let ready = states[Int(key.rawValue)].ready
    if let pending = core.pending(key) {
      return PendingStatus(
        key: key, value: pending.value.value,
        collapsed: pending.collapsed + (ready.map { $0.collapsed + 1 } ?? 0), waits: .quiet,
        due: pending.due)
    }
    guard let ready else { return nil }
    let waits: Waiting = !isOnline(key) ? .offline : isSending(key) ? .inFlight : .lane
    return PendingStatus(
      key: key, value: ready.change.value, collapsed: ready.collapsed, waits: waits,
      due: waits == .offline ? expiry(of: ready.change, key) : nil)
  }

  /// How many values wait, in the queue or behind it.
  package var pendingCount: Int { core.pendingCount + readyCount }

  /// Whether everything that can leave has left and was answered.
  package var isDrained: Bool {
    guard sendingCount == 0, core.pendingCount == 0 else { return false }
    guard readyCount > 0 else { return true }
    for place in states.indices where states[place].ready != nil {
      if devices[registry.properties[place].device].isOnline { return false }
    }
    return true
  }

  /// The keys whose value has not been acknowledged, in order of definition.
  package func unsentKeys() -> [KeyIndex] {
    var keys: [KeyIndex] = []
    for place in states.indices {
      let key = KeyIndex(Int32(place))
      let state = states[place]
      if state.ready != nil || isSending(key) || core.pending(key) != nil || heldSteps[key] != nil {
        keys.append(key)
      }
    }
    return keys
  }
}
