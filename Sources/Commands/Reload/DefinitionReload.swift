// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// A reload in progress: what is prepared of the new definitions, and which keys may still have
/// values that were accepted under the old ones.
///
/// Its owner calls ``prepare(_:)`` until ``phase`` is `prepared`, then ``replace(_:_:)``, then
/// ``nextSlice(_:)`` until there is none. Each but the second handles a limited number of keys.
struct DefinitionReload {
  enum Phase {
    /// Facts are derived of the keys from this one on; nothing has changed yet.
    case preparingKeys(next: Int)
    /// Relations, lanes and availability are compared of the devices from this one on.
    case preparingDevices(next: Int)
    /// Everything is ready for ``DefinitionReload/replace(_:_:)``.
    case prepared
    /// The new definitions count; the keys from this one on may have values from before.
    case migrating(next: Int)
  }

  /// How many keys get their new definition in a step because of anything but the step itself.
  static let extraKeysPerStep = 256

  /// The new definitions.
  let registry: Registry
  private let old: Registry
  private(set) var phase = Phase.preparingKeys(next: 0)
  /// What is prepared of the new properties; once they count, what is left of the old ones.
  private(set) var facts = KeyArray<PropertyFacts>()
  private(set) var relations = LazyArray<Relations>(repeating: Relations(), count: 0)
  private(set) var lanes: LaneAssignment
  /// Whether a device has other availability sources than before.
  private(set) var hasOtherSources: [Bool] = []
  /// Which keys have their new definition, by key of ``old``.
  private var isMigrated: [Bool]
  /// How many more keys may get their new definition before the next step.
  private var room = Self.extraKeysPerStep

  /// `lanes` has the new limits and no device.
  init(from old: Registry, to registry: Registry, lanes: LaneAssignment) {
    precondition(
      registry.properties.count >= old.properties.count,
      "A registry is reloaded only by one that continues it."
    )
    self.registry = registry
    self.old = old
    self.lanes = lanes
    isMigrated = Array(repeating: false, count: old.properties.count)
    facts.reserveCapacity(registry.properties.count)
  }

  // MARK: - Before the new definitions count

  /// Prepares the next `limit` keys, or devices with so many keys in all.
  ///
  /// - Returns: The new keys among them, and the number of devices.
  mutating func prepare(_ limit: Int) -> (newKeys: Range<Int>, devices: Int) {
    switch phase {
    case .preparingKeys(let next): return (prepareKeys(from: next, limit), hasOtherSources.count)
    case .preparingDevices(let next): prepareDevices(from: next, limit)
    case .prepared, .migrating: preconditionFailure("The definitions are prepared already.")
    }
    return (facts.count..<facts.count, hasOtherSources.count)
  }

  private mutating func prepareKeys(from next: Int, _ limit: Int) -> Range<Int> {
    let end = min(next + limit, registry.properties.count)
    for entry in registry.properties[next..<end] {
      facts.append(PropertyFacts(entry))
    }
    relations.extend(to: end)
    phase =
      end == registry.properties.count ? .preparingDevices(next: 0) : .preparingKeys(next: end)
    return max(next, isMigrated.count)..<max(end, isMigrated.count)
  }

  private mutating func prepareDevices(from first: Int, _ limit: Int) {
    var next = first
    var room = limit
    while room > 0, next < registry.devices.count {
      prepareDevice(next)
      room -= max(1, registry.indices(ofDevice: next).count)
      next += 1
    }
    phase = next == registry.devices.count ? .prepared : .preparingDevices(next: next)
  }

  private mutating func prepareDevice(_ number: Int) {
    lanes.add(registry.lane(ofDevice: number))
    hasOtherSources.append(
      number >= old.devices.count || !registry.hasSameAvailability(number, as: old)
    )
    Relations.derive(ofDevice: number, in: registry, &relations)
    for raw in registry.indices(ofDevice: number) {
      facts[KeyIndex(raw)].relate(relations[KeyIndex(raw)], of: KeyIndex(raw), in: registry)
    }
  }

  // MARK: - While the new definitions count

  /// Exchanges the old facts and relations for the new ones; visits no key.
  mutating func replace(
    _ facts: inout KeyArray<PropertyFacts>,
    _ relations: inout LazyArray<Relations>
  ) {
    swap(&facts, &self.facts)
    swap(&relations, &self.relations)
    phase = .migrating(next: 0)
  }

  /// The next `limit` places, of a key and of a device each; `nil` after the last.
  ///
  /// The memory of the old definitions of so many keys is freed.
  mutating func nextSlice(_ limit: Int) -> Range<Int>? {
    guard case .migrating(let next) = phase else {
      preconditionFailure("A key has its new definition before it counts.")
    }
    let count = max(old.properties.count, registry.devices.count)
    guard next < count else { return nil }
    let end = min(next + limit, count)
    phase = .migrating(next: end)
    relations.removeLast(min(limit, relations.count))
    return next..<end
  }

  /// The entry that a key had before; `nil` unless the key must get its new definition now, which
  /// is so once for each key.
  mutating func beginMigration(of key: KeyIndex) -> Registry.Entry? {
    let place = Int(key.rawValue)
    guard case .migrating = phase, place < isMigrated.count, !isMigrated[place] else { return nil }
    isMigrated[place] = true
    room -= 1
    return old[key]
  }

  /// Whether sending must wait for the next step, because so many keys have got their new
  /// definition.
  var isStepFull: Bool { room <= 0 }

  /// A step has ended.
  mutating func endStep() { room = Self.extraKeysPerStep }
}

extension Registry.Entry {
  /// Why a command ended whose key was removed.
  static var goneReason: String { "its device file names it no more" }
  /// Why a command ended that its property does not allow or confirm any more.
  static var changedReason: String { "its device file was changed" }

  /// Why a command with this value ends; `nil` if it may be sent.
  func reasonToEnd(_ value: Value) -> String? {
    if isRetired { return Self.goneReason }
    return definition.property.allows(value) ? nil : Self.changedReason
  }
}

/// The steps of a reload.
///
/// The new definitions count for all keys from one step on. A key's values from before are checked
/// against them when a later step reaches the key, or earlier, before anything else happens to it.
/// So nothing is ever sent that its property does not allow.
extension DefinitionReload {
  /// Begins to continue with another registry and other limits of lanes.
  static func begin(
    _ registry: Registry,
    lanes limits: [String: LaneLimits],
    in machine: inout CommandStateMachine
  ) {
    precondition(machine.reload == nil, "A reload begins after the one before has finished.")
    machine.reload = DefinitionReload(
      from: machine.registry,
      to: registry,
      lanes: machine.sendQueue.lanes.assignment(limits: limits)
    )
  }

  /// Does the next step, which looks at `limit` keys or devices at most; one looks at none.
  static func step(
    _ limit: Int,
    in machine: inout CommandStateMachine,
    at now: Moment
  ) -> ReloadStep {
    // The reload is taken out while it changes, so that none of its tables is copied.
    guard var reload = machine.reload.take() else { return .finished }
    switch reload.phase {
    case .preparingKeys, .preparingDevices:
      let (newKeys, devices) = reload.prepare(limit)
      reload.makeRoom(for: newKeys, devices: devices, in: &machine)
      machine.reload = reload
      return .prepared(keys: newKeys.upperBound, devices: devices)
    case .prepared:
      machine.registry = reload.registry
      machine.sendQueue.replace(reload, at: now)
      reload.replace(&machine.facts, &machine.relations)
      machine.reload = reload
      return .replaced
    case .migrating:
      guard let slice = reload.nextSlice(limit) else { return .finished }
      machine.reload = reload
      for place in slice {
        if place < machine.registry.devices.count { machine.sendQueue.renewDevice(place) }
        machine.migrate(KeyIndex(Int32(place)), at: now)
      }
      machine.reload?.endStep()
      return .migrated(slice)
    }
  }

  private func makeRoom(
    for keys: Range<Int>,
    devices: Int,
    in machine: inout CommandStateMachine
  ) {
    machine.sendQueue.extend(keys: keys.upperBound, devices: devices)
    machine.deliveries.extend(keys: keys.upperBound, devices: devices)
    machine.log.statuses.extend(keys: keys.upperBound)
    machine.waitingSteps.extend(keys: keys.upperBound)
    for place in keys {
      let policy = registry.definition(of: KeyIndex(Int32(place))).property.policy
      machine.queue.setPolicy(policy, for: KeyIndex(Int32(place)))
    }
  }
}

/// What a step of a reload did; see ``CommandStateMachine/continueReload(keys:at:)``.
package enum ReloadStep: Hashable, Sendable {
  /// There is room for so many keys and devices; the old definitions still count.
  case prepared(keys: Int, devices: Int)
  /// The new definitions count from now on.
  case replaced
  /// The values from before of these keys, by place, were checked.
  case migrated(Range<Int>)
  /// The reload has finished.
  case finished
}
