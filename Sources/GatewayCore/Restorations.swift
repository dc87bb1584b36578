// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

/// What devices get back that return after they had lost their power.
///
/// A device with `restore` that was reported online, and then offline, had confirmed some values.
/// Each first report after its return is compared with them. As soon as one differs, the values
/// that the device has not shown are sent once more, as one change. Nothing is sent after a newer
/// change or a change by hand after the return, and nothing to a device that returns together with
/// its bridge or the connection: it has lost nothing.
struct Restorations {
  /// What a device had when it went away.
  private struct Absence {
    var targets: [KeyIndex: Value]
    /// When the device came back; `nil` while it is away.
    var returnedAt: Moment?
    /// Whether it has said that it is away since its bridge and the connection were there last.
    var isCertain = true
    /// The keys that were reported since, each with whether the report differs.
    var differs: [KeyIndex: Bool] = [:]
    /// When keys were reported as they were, before the device came back.
    var sameAt: [KeyIndex: Moment] = [:]
  }

  /// How long after its return a report of a device counts as its first.
  static let patience = Duration.seconds(60)
  /// How long before its return a report that shows nothing new may have been the first, and how
  /// long after it another one says otherwise.
  static let haste = Duration.seconds(5)

  /// The devices that were reported online on this connection.
  private var present: Set<Int> = []
  private var absences: [Int: Absence] = [:]
  /// Devices that have returned, and reported something else.
  private var due: Set<Int> = []

  /// Whether a device may be given something.
  var isDue: Bool { !due.isEmpty }

  /// Whether a device is or was away.
  @inline(__always)
  var isIdle: Bool { absences.isEmpty }

  /// A device says that it is away; `targets` are what it had confirmed, if it was online.
  mutating func left(_ device: Int, with targets: [KeyIndex: Value]?) {
    absences[device]?.isCertain = true
    guard present.remove(device) != nil, let targets else { return }
    // One that came and went without a word has what it had before.
    let known = absences[device].flatMap { $0.differs.isEmpty ? $0.targets : nil }
    absences[device] = Absence(targets: known ?? targets)
    due.remove(device)
  }

  /// A device says that it is online.
  ///
  /// It has returned with its bridge or the connection if those were away, and it has not said since
  /// that it is.
  mutating func isPresent(_ device: Int) {
    present.insert(device)
    if absences[device]?.isCertain == false { forget(device) }
  }

  /// A device that was away is online, all things considered.
  mutating func returned(_ device: Int, at now: Moment) {
    guard absences[device] != nil, absences[device]?.returnedAt == nil else { return }
    absences[device]?.returnedAt = now
    if absences[device]?.differs.values.contains(true) == true { due.insert(device) }
  }

  /// A device reported a key; `isShown` states that this is a given value of it.
  mutating func reported(
    _ key: KeyIndex,
    of device: Int,
    at now: Moment,
    isShown: (Value) -> Bool
  ) {
    guard let absence = absences[device], let target = absence.targets[key] else { return }
    let differs = !isShown(target)
    guard let returnedAt = absence.returnedAt else {
      absences[device]?.differs[key] = differs ? true : nil
      absences[device]?.sameAt[key] = differs ? nil : now
      return
    }
    if returnedAt.duration(to: now) > Self.patience { return forget(device) }
    guard let known = absence.differs[key] else {
      if differs, let sameAt = absence.sameAt[key], returnedAt.duration(to: now) > Self.haste,
        sameAt.duration(to: returnedAt) <= Self.haste
      {
        return forget(device)
      }
      absences[device]?.differs[key] = differs
      if differs { due.insert(device) }
      return
    }
    // Someone has changed it since.
    if known != differs { forget(device) }
  }

  /// The bridge of a device has gone, or the connection: where the device is, it must say again.
  mutating func doubt(_ device: Int) {
    present.remove(device)
    if absences[device]?.returnedAt != nil { return forget(device) }
    absences[device]?.isCertain = false
  }

  /// Forgets what a device had: something newer was asked for.
  mutating func forget(_ device: Int) {
    absences[device] = nil
    due.remove(device)
  }

  /// The connection has ended.
  mutating func doubtAll() {
    for device in absences.keys { doubt(device) }
    present = []
  }

  /// A device that is due, once: what it had, and which of its reports differ from that.
  mutating func popDue() -> (device: Int, targets: [KeyIndex: Value], differs: [KeyIndex: Bool])? {
    guard let device = due.min(), let absence = absences[device] else { return nil }
    forget(device)
    return (device, absence.targets, absence.differs)
  }
}

extension GatewayCore {
  /// Records what an availability source of a device says, for what the device gets back.
  ///
  /// `isShared` states that the source is that of other devices too.
  mutating func followAvailability(
    ofDevice device: Int,
    source: Int,
    isOnline: Bool,
    wasOnline: Bool,
    isShared: Bool,
    at now: Moment
  ) {
    let definition = registry.definition(ofDevice: device)
    guard definition.restores else { return }
    let pattern = definition.pattern
    guard pattern.isOwn(pattern.availability[source], isShared: isShared) else {
      if !isOnline { restorations.doubt(device) }
      return
    }
    if !isOnline {
      let targets = wasOnline ? restorable(of: device) : nil
      restorations.left(device, with: targets)
      for key in (targets ?? [:]).keys { commands.stand(key) }
    } else {
      restorations.isPresent(device)
      if commands.sendQueue.isDeviceOnline(device) { restorations.returned(device, at: now) }
    }
  }

  /// What a device has confirmed and would get back.
  private func restorable(of device: Int) -> [KeyIndex: Value] {
    var values: [KeyIndex: Value] = [:]
    for place in registry.indices(ofDevice: device) {
      let key = KeyIndex(place)
      let property = registry.definition(of: key).property
      guard property.restore, !property.isReadOnly, !property.isAction else { continue }
      guard let value = commands.confirmedTarget(of: key), !commands.isUrgent(value, of: key) else {
        continue
      }
      // What is under way is newer than anything that is confirmed.
      let rivals = commands.rivals(of: key, value, isUrgent: false, isAccepted: false)
      if !rivals.contains(where: { commands.isUnderWay($0.key) }) { values[key] = value }
    }
    return values
  }

  /// Sends devices that have returned what they had.
  mutating func restoreReturned(at now: Moment) {
    while restorations.isDue, let absence = restorations.popDue() {
      guard shutdown == nil, !elsewhere.contains(absence.device) else { continue }
      let values = values(of: absence.targets, absence.differs)
      guard let first = values.first else { continue }
      let origin = ChangeOrigin(source: ChangeOrigin.restore)
      let options = ChangeOptions(origin: origin, skipsQuiet: true)
      do throws(ValidationError) {
        try change(values, at: now, options)
      } catch {
        reject(first.key, reason: error.description, at: now, origin: origin)
      }
    }
  }

  /// What one change can give back: of a lamp that was off, nothing but that; of properties that
  /// exclude each other, the one that was set last.
  private func values(
    of targets: [KeyIndex: Value],
    _ differs: [KeyIndex: Bool]
  ) -> [(key: KeyIndex, value: Value)] {
    let power = targets.first { key, value in
      value == .boolean(false) && registry.definition(of: key).property.isPower
    }
    if let power { return differs[power.key] == true ? [(power.key, power.value)] : [] }
    let newestFirst = targets.filter { differs[$0.key] != false }.sorted {
      let (left, right) = (commands.newestNumber(of: $0.key), commands.newestNumber(of: $1.key))
      return left == right ? $0.key.rawValue < $1.key.rawValue : left > right
    }
    var chosen: [(key: KeyIndex, value: Value)] = []
    for (key, value) in newestFirst {
      let property = registry.definition(of: key).property
      let isExcluded = chosen.contains { other in
        let rival = registry.definition(of: other.key).property
        return property.excludes.contains(rival.id) || rival.excludes.contains(property.id)
      }
      guard !isExcluded, property.restore, property.allows(value) else { continue }
      chosen.append((key, value))
    }
    return chosen.sorted { $0.key.rawValue < $1.key.rawValue }
  }
}
