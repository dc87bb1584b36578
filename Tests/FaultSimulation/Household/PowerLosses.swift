// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import LastOut
import Values

/// What devices with `restore` had before they lost their power.
struct PowerLosses {
  /// What each key may get back: what it had before the losses since something newer was asked for.
  private(set) var before: [Int: [Value]] = [:]
  /// What keys must get back: nothing else has happened to their devices since.
  private(set) var owed: [Int: Value] = [:]

  /// A key's device loses its power.
  mutating func lost(_ key: Int, _ values: [Value], owed value: Value?) {
    before[key, default: []] += values
    owed[key] = value
  }

  /// Something else happens to a device: what it gets back is not certain.
  mutating func disturbed(_ keys: some Sequence<Int>) {
    for key in keys { owed[key] = nil }
  }

  mutating func disturbedAll() { owed = [:] }

  /// Something newer counts.
  mutating func forget(_ keys: some Sequence<Int>) {
    for key in keys {
      owed[key] = nil
      before[key] = nil
    }
  }

  mutating func forgetAll() { self = PowerLosses() }
}

/// A device that lost its power gets back what it had, and nothing after something newer.
extension HouseholdLife {
  /// A device is about to lose its power.
  func noteLoss(of device: Int) {
    guard traits.restores else { return }
    let keys = keys(of: device).filter { registry.properties[$0].property.restore }
    let isCertain = isAtRest(device)
    let shown: [Int: Value] = Dictionary(
      uniqueKeysWithValues: keys.compactMap { key in
        devices[device].value(registry.properties[key].property.id, at: now).map { (key, $0) }
      }
    )
    var owed: [Int: Value] = [:]
    for (key, value) in shown where isCertain && isConfirmed(key, value) { owed[key] = value }
    // Of a lamp that is off, only that comes back; of two that exclude each other, only one.
    if let power = keys.first(where: { shown[$0] == .boolean(false) }) {
      owed = owed.filter { $0.key == power }
    }
    owed = owed.filter { facts[$0.key].excludes.isEmpty }
    losses.disturbed(keys)
    for key in keys {
      // A device that was on its way had confirmed where it went.
      let target = core.status(KeyIndex(Int32(key))).target
      losses.lost(key, [shown[key], heard[key], target].compactMap(\.self), owed: owed[key])
    }
    if !owed.isEmpty { seen[.certainLosses] += 1 }
  }

  /// Whether the gateway knows all of a device, and nothing is under way.
  private func isAtRest(_ device: Int) -> Bool {
    guard broker.isConnected, core.isOnline(device: device) else { return false }
    let keys = keys(of: device)
    let isMoved = keys.contains { expectation.hasOpenCommand(of: $0) || isMoving($0) || isLate($0) }
    return !isMoved && broker.outstanding.isEmpty
      && !timeline.contains { planned in
        switch planned {
        case .availability(let other, _): other == device
        case .arrival, .retainedReport: true
        default: false
        }
      }
  }

  private func isConfirmed(_ key: Int, _ value: Value) -> Bool {
    let status = core.status(KeyIndex(Int32(key)))
    let property = registry.properties[key].property
    guard status.phase == .confirmed, !property.urgent.contains(value), let target = status.target,
      let heard = heard[key]
    else { return false }
    return facts[key].isSame(target, value) && facts[key].isSame(heard, value)
  }

  /// Something newer was asked for: nothing comes back after it, unless the gateway does not know yet
  /// that the device is away.
  func noteNewer(_ key: Int, _ value: Value) {
    let device = facts[key].device
    guard devices[device].isPowered || !core.isOnline(device: device) else {
      losses.disturbed(keys(of: device))
      losses.forget(facts[key].excludes)
      return losses.lost(key, [value], owed: nil)
    }
    losses.forget(keys(of: device))
  }

  /// What was asked for meanwhile is cancelled: what was before counts again.
  func noteCancel(_ key: Int) {
    guard !devices[facts[key].device].isPowered else { return }
    for key in [key] + facts[key].excludes {
      losses.lost(key, [heard[key]].compactMap(\.self), owed: nil)
    }
  }

  /// The gateway gives a value back: as a command of its own, which nobody asked for.
  func restores(_ key: Int, _ value: Value, number: UInt64) {
    seen[.restored] += 1
    if !(losses.before[key] ?? []).contains(where: { facts[key].isSame($0, value) }) {
      let known = losses.before[key]?.map(\.bareText) ?? []
      violated(.restored, "\(name(key)) gets back \(value.bareText), not one of \(known)")
    }
    commands.intents += 1
    commands.resumed[number] = commands.intents
    expectation.asked(value, of: key, by: commands.intents)
  }

  /// Checks that devices have got back what they had.
  func checkRestored() {
    for (key, value) in losses.owed.sorted(by: { $0.key < $1.key }) {
      let state = devices[facts[key].device].value(registry.properties[key].property.id, at: now)
      if let state, facts[key].isSame(state, value) { continue }
      violated(
        .restored,
        "\(name(key)) had \(value.bareText) before its power was lost, and has"
          + " \(state?.bareText ?? "nothing")"
      )
    }
    losses.forgetAll()
  }
}
