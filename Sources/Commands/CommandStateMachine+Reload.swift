// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// Going on with other devices and policies.
extension CommandStateMachine {
  private static let goneReason = "its device file names it no more"
  private static let changedReason = "its device file was changed"

  /// Goes on with another registry, which continues this one.
  ///
  /// What is pending stays, with the deadline it has; policies apply from the next change on. A
  /// value that its property does not allow any more, and whatever waits of a key that is gone, is
  /// cancelled. Lanes keep their tokens; `limits`, as in ``Settings/lanes``, are their new limits,
  /// where they have any. Costs time in proportion to all keys.
  package mutating func reload(
    _ registry: Registry,
    lanes limits: [String: (rate: Double, burst: Int)]? = nil,
    at now: Moment
  ) {
    precondition(
      registry.properties.count >= self.registry.properties.count,
      "A registry is reloaded only by one that continues it."
    )
    let old = self.registry
    for place in old.properties.indices {
      endWhatIsGone(place, old.properties[place], registry.properties[place], at: now)
    }
    if let limits { settings.lanes = limits }
    self.registry = registry
    facts = PropertyFacts.all(in: registry)
    makeRoom(continuing: old)
    takeRoadsAgain(at: now)
    for place in old.properties.indices
    where old.properties[place].property != registry.properties[place].property {
      refit(KeyIndex(Int32(place)), at: now)
    }
  }

  /// Ends what waits of a key that was taken out, while its old definition still stands.
  private mutating func endWhatIsGone(
    _ place: Int,
    _ old: Registry.Entry,
    _ new: Registry.Entry,
    at now: Moment
  ) {
    guard new.isRetired, !old.isRetired else { return }
    let key = KeyIndex(Int32(place))
    endWaiting(key, as: .cancelled, reason: Self.goneReason, at: now)
    endOnItsWay(key, as: .cancelled, reason: Self.goneReason, at: now)
    states[place].actual = nil
    states[place].lastSent = nil
    setTarget(nil, of: key)
  }

  private mutating func makeRoom(continuing old: Registry) {
    for _ in states.count..<registry.properties.count { states.append(PropertyState()) }
    deadlines.extend(toKeys: registry.properties.count)
    for (number, device) in registry.devices.enumerated() {
      if number == devices.count {
        devices.append(DeviceState(sources: device.availability.count))
      } else if old.devices[number].availability != device.availability {
        devices[number] = DeviceState(sources: device.availability.count)
      }
    }
    for (place, entry) in registry.properties.enumerated() where !entry.isRetired {
      core.setPolicy(entry.property.policy, for: KeyIndex(Int32(place)))
    }
  }

  /// Lanes may be others now; whatever waits joins them in the order in which it was asked for.
  private mutating func takeRoadsAgain(at now: Moment) {
    lanes = LaneTable(registry: registry, limits: settings.lanes, continuing: lanes, at: now)
    let waiting = states.indices.filter { states[$0].ready != nil }
      .sorted { readyNumber($0) < readyNumber($1) }
    for place in waiting { takeRoad(KeyIndex(Int32(place)), at: now) }
  }

  private func readyNumber(_ place: Int) -> UInt64 { states[place].ready?.change.number ?? 0 }

  /// A key is defined otherwise now: what does not fit any more is dropped.
  private mutating func refit(_ key: KeyIndex, at now: Moment) {
    let place = Int(key.rawValue)
    guard !registry.properties[place].isRetired else { return }
    if let waiting = core.pending(key)?.value.value ?? states[place].ready?.change.value,
      !fits(waiting, place)
    {
      endWaiting(key, as: .cancelled, reason: Self.changedReason, at: now)
    }
    if let outstanding = states[place].onItsWay {
      let isUnprovable = !facts[place].canConfirm && !isSending(key)
      if isUnprovable || !fits(outstanding.change.value, place) {
        endOnItsWay(key, as: .superseded, reason: Self.changedReason, at: now)
      }
    }
    if let actual = states[place].actual, !isReportable(actual, place) {
      states[place].actual = nil
    }
    if let sent = states[place].lastSent, !fits(sent, place) { states[place].lastSent = nil }
    refreshTarget(key)
    note(key)
  }

  /// Whether a device may report the value, which need not be one that can be asked for.
  private func isReportable(_ value: Value, _ place: Int) -> Bool {
    let entry = registry.properties[place]
    return entry.property.value(fromWire: entry.wireValue(of: value)) == value
  }

  private func fits(_ value: Value, _ place: Int) -> Bool {
    (try? registry.properties[place].property.value(from: value.json)) == value
  }
}
