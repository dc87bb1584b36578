// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Which commands share a message, known by the key of their group: it has ended when they all have.
struct SharedFlights {
  /// The group of each key whose command is in flight in such a message.
  private var groups: [KeyIndex: KeyIndex] = [:]
  /// The keys whose commands have not ended, by group.
  private var members: [KeyIndex: Set<KeyIndex>] = [:]

  /// Begins a message; what is left of an older one of the group no longer counts.
  mutating func begin(_ group: KeyIndex, carrying keys: [KeyIndex]) {
    for key in members[group] ?? [] { groups[key] = nil }
    members[group] = Set(keys)
    for key in keys { groups[key] = group }
  }

  /// The command of `key` ended.
  ///
  /// - Returns: What its message is known by, which is `key` for one that is not shared; `nil` while
  ///   other commands of the message are in flight.
  mutating func end(_ key: KeyIndex) -> KeyIndex? {
    guard !groups.isEmpty, let group = groups.removeValue(forKey: key) else { return key }
    members[group]?.remove(key)
    guard members[group]?.isEmpty == true else { return nil }
    members[group] = nil
    return group
  }
}
