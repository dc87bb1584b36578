// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// Groups: their keys stand for keys of other devices and never have a value of their own in flight.
extension CommandStateMachine {
  /// Whether a key stands for keys of other devices.
  @inline(__always)
  package func isGroup(_ key: KeyIndex) -> Bool { dispatcher.facts[key].isGroup }

  /// What a change of a group's key asks of its members, before any of them changes.
  ///
  /// A toggle makes the members the same: off, if any of them is on. A step counts from what each has.
  package func groupChange(_ change: ValueChange, of group: KeyIndex) -> ValueChange {
    guard case .toggle = change else { return change }
    let values = registry.groups.members(of: group).map { base(of: $0) }
    if values.contains(.boolean(true)) { return .set(.boolean(false)) }
    // Where one is unknown, each member's toggle says so, or waits for its state.
    return values.allSatisfy { $0 == .boolean(false) } ? .set(.boolean(true)) : .toggle
  }

  /// What a change of a group's key asks of one member.
  ///
  /// - Throws: When the member does not allow the value.
  package func memberChange(
    _ change: ValueChange,
    for member: KeyIndex
  ) throws(ValidationError) -> ValueChange {
    guard case .set(let value) = change else { return change }
    return .set(try registry.value(from: value.json, of: member))
  }

  /// Shows what the members of groups have after keys have changed.
  package mutating func refreshGroups(at now: Moment) {
    guard !registry.groups.isEmpty else { return }
    var outdated: Set<KeyIndex> = []
    for key in dispatcher.log.statuses.changedKeys where dispatcher.facts[key].isMember {
      outdated.formUnion(registry.groups.groups(of: key))
    }
    for key in outdated { refreshGroup(key, at: now) }
  }

  /// Shows what the members of all groups have, after a reload.
  package mutating func refreshAllGroups(at now: Moment) {
    for key in registry.groups.keys { refreshGroup(key, at: now) }
  }

  private mutating func refreshGroup(_ key: KeyIndex, at now: Moment) {
    let members = registry.groups.members(of: key)
    let actual = Self.common(members.map { dispatcher.deliveries[$0].actual })
    let target = Self.common(members.map { dispatcher.log.statuses.target(of: $0) })
    if dispatcher.deliveries[key].actual != actual {
      dispatcher.deliveries.update(key) { $0.show(actual) }
      dispatcher.log.statuses.recordReport(for: key, at: now)
    }
    dispatcher.setTarget(target, of: key)
  }

  /// The value that all have; `nil` where they differ or one is unknown.
  private static func common(_ values: some Sequence<Value?>) -> Value? {
    var first: Value?
    for value in values {
      guard let value, first == nil || first == value else { return nil }
      first = value
    }
    return first
  }
}

extension CommandEvent {
  /// A step in the life of a group's command.
  package init(
    ofGroup key: KeyIndex,
    _ phase: Phase,
    value: Value?,
    collapsed: Int,
    number: UInt64,
    acceptedAt: Moment,
    at now: Moment,
    reason: String?,
    origin: ChangeOrigin?,
    isFinal: Bool
  ) {
    self.init(
      key: key,
      phase: phase,
      value: value,
      collapsed: collapsed,
      number: number,
      acceptedAt: acceptedAt,
      at: now,
      attempt: 1,
      reason: reason,
      origin: origin,
      isFinal: isFinal
    )
  }
}
