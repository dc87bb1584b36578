// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// What keys show, and what waits of them.
///
/// What every change asks is inlined: a call would copy the whole dispatcher for its time.
extension CommandDispatcher {
  package func status(_ key: KeyIndex) -> KeyStatus {
    log.statuses.status(key, actual: deliveries[key].actual)
  }

  /// What was requested of a key last.
  package func target(of key: KeyIndex) -> Value? { log.statuses.target(of: key) }

  /// Whether a device counts as online; one that has reported nothing does.
  package func isDeviceOnline(_ device: Int) -> Bool { sendQueue.isDeviceOnline(device) }

  /// Whether `key` stands for momentary commands rather than a value.
  @inline(__always)
  package func isAction(_ key: KeyIndex) -> Bool { facts[key].isAction }

  /// Whether `value` is one that is sent at once.
  @inline(__always)
  package func isUrgent(_ value: Value, of key: KeyIndex) -> Bool {
    facts[key].hasUrgent && registry[key].property.urgent.contains(value)
  }

  /// What waits for those of `keys` that have something waiting.
  ///
  /// Of a value in a lane, ``PendingStatus/due`` is when its token comes, if no urgent value goes
  /// ahead of it and none in its lane is cancelled. Takes time in proportion to the keys and to
  /// everything that waits in lanes.
  package func pendingStatuses(of keys: [KeyIndex], at now: Moment) -> [PendingStatus] {
    let times = sendTimes(after: now)
    return keys.compactMap { key in
      guard var status = pendingStatus(key) else { return nil }
      if status.waits == .lane { status.due = times[key] }
      return status
    }
  }

  /// When the values that wait in lanes are sent; see ``pendingStatuses(of:at:)``.
  ///
  /// Takes time in proportion to everything that waits in lanes.
  package func sendTimes(after now: Moment) -> [KeyIndex: Moment] {
    sendQueue.sendTimes(after: now, ignoresLimits: isClosing)
  }

  /// How many commands of `key` wait to be sent; more than one only of an action.
  package func commandCount(_ key: KeyIndex) -> Int { sendQueue.commandCount(key) }

  /// What waits for `key`, the newest value; `nil` when nothing does.
  ///
  /// Takes constant time, and so does not say when a lane sends it.
  package func pendingStatus(_ key: KeyIndex) -> PendingStatus? {
    let command = sendQueue[key]
    if let pending = queue.pending(key) {
      return PendingStatus(pending, of: key, behind: command)
    }
    return command.map {
      PendingStatus($0, of: key, count: sendQueue.commandCount(key), waits: sendQueue.waits(key))
    }
  }

  /// The lanes that have a limit, by name.
  package var laneStatuses: [LaneStatus] { sendQueue.laneStatuses }

  /// The number of values that wait for quiet or to be sent.
  @inline(__always)
  package var pendingCount: Int { queue.pendingCount + sendQueue.count }

  /// Whether everything that can be sent was sent and answered.
  package var isDrained: Bool {
    sendQueue.unacknowledgedCount == 0 && queue.pendingCount == 0 && !sendQueue.hasReady
  }

  /// Whether anything can be sent as soon as its lane and the client have room; constant time.
  package var hasReady: Bool { sendQueue.hasReady }

  /// Whether anything is not acknowledged, what cannot be sent included; constant time.
  var hasUnsent: Bool { sendQueue.unacknowledgedCount > 0 || pendingCount > 0 }

  /// Whether a value of `key` waits for quiet, to be sent, or for its acknowledgement.
  func isUnsent(_ key: KeyIndex) -> Bool {
    if sendQueue[key] != nil || queue.isPending(key) { return true }
    guard let flight = deliveries[key].inFlight else { return false }
    return flight.stage == .sending && !flight.isEnded
  }

  /// Whether `value` would not be sent, because the device is known to have it.
  package func isUnchanged(_ value: Value, of key: KeyIndex) -> Bool {
    !isUrgent(value, of: key) && deviceHas(value, key)
  }
}
