// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// The effects of a journal on the machine.
extension Model {
  /// Withholds these keys, except urgent values that have waited long enough, and releases all
  /// others.
  mutating func withhold(_ withheld: Set<KeyIndex>, isDue: (UInt64) -> Bool) {
    for place in places {
      let isWithheld = withheld.contains(KeyIndex(Int32(place)))
      let isUrgentDue =
        isWithheld && (keys[place].ready.map { $0.isUrgent && isDue($0.number) } ?? false)
      guard
        keys[place].isWithheld != isWithheld || keys[place].isUrgentDue != isUrgentDue
      else { continue }
      keys[place].isWithheld = isWithheld
      keys[place].isUrgentDue = isUrgentDue
      lanes.interrupted(device: keys[place].device)
    }
  }

  /// Queues a value of an earlier process, which ends older ones of other keys: those that an
  /// earlier process accepted before it, and none of this one.
  mutating func resume(_ survivor: Survivor, number: UInt64) {
    let place = Int(survivor.key.rawValue)
    lastNumber = max(lastNumber, number)
    keys[place].newest = number
    keys[place].phase = .accepted
    let isUrgent = keys[place].property.urgent.contains(survivor.value)
    if isUrgent {
      for other in keys[place].ends.map({ Int($0.rawValue) }) where isOlder(other, than: survivor) {
        endWaiting(other, as: .cancelled, reason: "urgent")
        endFlight(other, as: .cancelled, reason: "urgent")
      }
    }
    let older = keys[place].excluded.filter { isOlder(Int($0.rawValue), than: survivor) }
    dropExcluded(by: place) { older.contains(KeyIndex(Int32($0))) }
    makeReady(
      KeyModel.Entry(
        number: number,
        value: survivor.value,
        expiresAt: survivor.expiresAt,
        caller: 0,
        transition: survivor.transition,
        isUrgent: isUrgent,
        isReplayed: true,
        resumedOrder: survivor.order
      ),
      place
    )
  }

  /// Whether every command of a key is older than a stored value.
  private func isOlder(_ place: Int, than survivor: Survivor) -> Bool {
    [keys[place].queued, keys[place].ready, keys[place].flight?.entry].allSatisfy { entry in
      guard let entry else { return true }
      return entry.resumedOrder.map { $0 < survivor.order } ?? false
    }
  }

  /// Expires a value of an earlier process.
  mutating func expireUnresumed(_ survivor: Survivor, number: UInt64, reason: String) {
    lastNumber = max(lastNumber, number)
    expected.append(
      ExpectedEvent(
        key: survivor.key,
        phase: .expired,
        value: survivor.value,
        number: number,
        collapsed: 0,
        attempt: 1,
        reason: reason,
        caller: 0,
        isFinal: true
      )
    )
  }

  /// Applies reloaded device files: policies apply from the next change on.
  mutating func reload(_ registry: Registry) {
    for place in places { keys[place].property = registry.properties[place].property }
    for place in places { lanes.interrupted(device: keys[place].device) }
  }

  /// Refuses the waiting value of a key, unless it is urgent.
  mutating func refuseWaiting(_ key: KeyIndex, reason: String) {
    endWaiting(Int(key.rawValue), as: .rejected, reason: reason, exceptUrgent: true)
    keys[Int(key.rawValue)].heir = nil
  }

  /// Lets an urgent value wait again, because those that replaced it were rejected; returns its
  /// numbers before and now.
  mutating func restoreUrgent(_ key: KeyIndex) -> (before: UInt64, now: UInt64)? {
    let place = Int(key.rawValue)
    guard var entry = keys[place].overridden?.entry else { return nil }
    let before = entry.number
    lastNumber += 1
    entry.number = lastNumber
    entry.collapsed = 0
    entry.isReplayed = true
    keys[place].newest = entry.number
    keys[place].phase = .accepted
    makeReady(entry, place)
    return (before, entry.number)
  }
}
