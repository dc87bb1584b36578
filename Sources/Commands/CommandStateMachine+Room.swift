// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// How many values may wait.
extension CommandStateMachine {
  /// Everything that counts against the limit.
  @inline(__always)
  var waitingCount: Int { core.pendingCount + readyCount + heldSteps.count }

  /// Whether another value of `key` may wait: one key's newer value is always welcome.
  func hasRoom(for key: KeyIndex) -> Bool {
    waitingCount < settings.pendingLimit || hasValue(key)
  }

  /// Whether a value of `key` waits.
  func hasValue(_ key: KeyIndex) -> Bool { waiting(for: key).hasValue }

  /// Refuses values of several keys if one of them would find no room, taken in this order at one
  /// instant.
  ///
  /// What is not refused here finds room in
  /// ``change(_:of:at:origin:ttl:options:skipsQuiet:)``. Costs constant time where there is room for
  /// one more of each.
  ///
  /// - Throws: `noRoomForAll`; nothing has changed then.
  package func checkRoom(for values: [(key: KeyIndex, value: Value)]) throws(ValidationError) {
    let limit = settings.pendingLimit
    guard waitingCount + values.count > limit else { return }
    var plan = RoomPlan(count: waitingCount)
    var hasRoom = true
    for (key, value) in values {
      let facts = facts[Int(key.rawValue)]
      let before = plan.waiting[key] ?? waiting(for: key)
      let isUrgent =
        facts.hasUrgent
        && registry.properties[Int(key.rawValue)].property.urgent.contains(value)
      if isUrgent {
        for other in facts.ends { plan.end(other, waiting(for: other)) }
      } else if plan.count >= limit, !before.hasValue {
        hasRoom = false
      }
      plan.put(key, after: before, isUrgent: isUrgent)
      for other in facts.excluded { plan.end(other, waiting(for: other)) }
    }
    guard !hasRoom else { return }
    throw .noRoomForAll(
      needed: plan.peak - waitingCount,
      free: max(limit - waitingCount, 0),
      limit: limit
    )
  }

  private func waiting(for key: KeyIndex) -> RoomPlan.Waiting {
    RoomPlan.Waiting(
      quiet: core.isPending(key) ? 1 : 0,
      ready: states[Int(key.rawValue)].ready == nil ? 0 : 1,
      held: heldSteps[key] == nil ? 0 : 1
    )
  }
}

/// What would wait if values were taken one after the other.
private struct RoomPlan {
  /// What of one key waits.
  struct Waiting {
    /// In its quiet period.
    var quiet = 0
    /// Past its quiet period, or about to be: a leading value is, at once.
    var ready = 0
    /// For the device's state.
    var held = 0

    var count: Int { quiet + ready + held }
    var hasValue: Bool { quiet + ready > 0 }
  }

  var count: Int
  /// The most that ``count`` came to.
  private(set) var peak = 0
  /// Of the keys that differ from how they are now.
  private(set) var waiting: [KeyIndex: Waiting] = [:]

  init(count: Int) { self.count = count }

  /// A value of `key` comes to what waits already, or ends it.
  mutating func put(_ key: KeyIndex, after before: Waiting, isUrgent: Bool) {
    let after = Waiting(quiet: isUrgent ? 0 : before.ready, ready: 1)
    count += after.count - before.count
    peak = max(peak, count)
    waiting[key] = after
  }

  /// Nothing of `key` waits any longer; `known` is what does if the plan has not touched it.
  mutating func end(_ key: KeyIndex, _ known: Waiting) {
    count -= (waiting[key] ?? known).count
    waiting[key] = Waiting()
  }
}
