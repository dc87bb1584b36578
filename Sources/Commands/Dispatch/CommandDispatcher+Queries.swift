// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// What keys show, and what waits of them.
///
/// What every change asks is inlined: a call would copy the whole dispatcher for its time.
extension CommandDispatcher {
  package func status(_ key: KeyIndex) -> KeyStatus {
    log.statuses.status(key, actual: deliveries[key].actual)
  }

  /// Whether the property has a state topic and has never been reported.
  package func isUnheard(_ key: KeyIndex) -> Bool {
    facts[key].isReported && !deliveries[key].reception.isHeard
  }

  /// Whether a device has properties with a state topic, and none was ever reported.
  package func isUnheard(device: Int) -> Bool {
    var isUnheard = false
    for number in registry.indices(ofDevice: device) where facts[KeyIndex(number)].isReported {
      if deliveries[KeyIndex(number)].reception.isHeard { return false }
      isUnheard = true
    }
    return isUnheard
  }

  /// The reports that could not be read.
  package var unreadable: UnreadableReports { deliveries.unreadable }

  /// Whether `key` stands for momentary commands rather than a value.
  @inline(__always)
  package func isAction(_ key: KeyIndex) -> Bool { facts[key].isAction }

  /// Whether `value` is one that is sent at once.
  @inline(__always)
  package func isUrgent(_ value: Value, of key: KeyIndex) -> Bool {
    facts[key].hasUrgent && registry.definition(of: key).property.urgent.contains(value)
  }

  /// The number of values that wait for quiet or to be sent.
  @inline(__always)
  package var pendingCount: Int { queue.pendingCount + sendQueue.count }

  /// Whether everything that can be sent was sent and answered.
  package var isDrained: Bool {
    sendQueue.unacknowledgedCount == 0 && queue.pendingCount == 0 && !sendQueue.hasReady
      && (sendQueue.count == 0 || !sendQueue.retained.areMissing)
  }

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
