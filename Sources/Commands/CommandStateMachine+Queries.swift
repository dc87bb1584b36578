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
    let place = Int(key.rawValue)
    return Status(
      target: states[place].target,
      actual: states[place].actual,
      phase: states[place].phase,
      since: states[place].changedAt
    )
  }

  /// What waits for `key`, the newest value; `nil` when nothing does.
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
