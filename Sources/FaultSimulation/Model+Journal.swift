// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What a journal asks of the machine.
extension Model {
  /// Nothing of these keys leaves, and of all others what may.
  mutating func withhold(_ withheld: Set<KeyIndex>) {
    for place in places {
      let isWithheld = withheld.contains(KeyIndex(Int32(place)))
      guard keys[place].isWithheld != isWithheld else { continue }
      keys[place].isWithheld = isWithheld
      lanes.interrupted(device: keys[place].device)
    }
  }

  /// A value of an earlier process is ready to leave; the number that it has now.
  mutating func resume(_ survivor: Survivor) -> UInt64 {
    let place = Int(survivor.key.rawValue)
    lastNumber += 1
    keys[place].newest = lastNumber
    keys[place].phase = .accepted
    makeReady(
      KeyModel.Entry(
        number: lastNumber,
        value: survivor.value,
        expiresAt: survivor.expiresAt,
        caller: 0,
        isUrgent: keys[place].property.urgent.contains(survivor.value)
      ),
      place
    )
    return lastNumber
  }

  /// A value of an earlier process was too old.
  mutating func expireUnresumed(_ survivor: Survivor, reason: String) {
    lastNumber += 1
    expected.append(
      ExpectedEvent(
        key: survivor.key,
        phase: .expired,
        value: survivor.value,
        number: lastNumber,
        collapsed: 0,
        attempt: 1,
        reason: reason,
        caller: 0,
        isFinal: true
      )
    )
  }

  /// What waits of a key is refused after all.
  mutating func refuseWaiting(_ key: KeyIndex, reason: String) {
    endWaiting(Int(key.rawValue), as: .rejected, reason: reason)
  }
}
