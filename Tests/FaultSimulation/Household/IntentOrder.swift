// Settle
// SPDX-License-Identifier: Apache-2.0

package import Values

/// What the simulated broker knows of the order of people's intents.
///
/// For two changes of which either ends or overwrites the other, no message that the older one
/// caused arrives after one that the newer one caused. A repetition counts as its change; a merged
/// message is as new as its newest.
package struct IntentOrder: Sendable {
  /// What a message carries for one key.
  package struct Part: Sendable {
    package var key: Int
    package var value: Value
    /// The number of the accepted change; later ones are greater.
    package var intent: UInt64
    package var isOfGroup: Bool

    package init(key: Int, value: Value, intent: UInt64, isOfGroup: Bool = false) {
      self.key = key
      self.value = value
      self.intent = intent
      self.isOfGroup = isOfGroup
    }
  }

  package struct Violation: Sendable {
    package var clause: Clause
    package var older: Part
    package var newer: Part
  }

  private let facts: [HouseholdFacts]
  /// The parts of each key that arrived, those of the newest intents.
  private var arrived: [[Part]]

  package init(_ facts: [HouseholdFacts]) {
    self.facts = facts
    arrived = Array(repeating: [], count: facts.count)
  }

  /// Records a message; returns the first violated order, if any.
  package mutating func arrived(_ parts: [Part]) -> Violation? {
    let newest = parts.map(\.intent).max() ?? 0
    var found: Violation?
    for part in parts {
      for key in facts.indices where facts[key].device == facts[part.key].device {
        for other in arrived[key] where other.intent > newest && found == nil {
          guard let clause = clause(older: part, newer: other) else { continue }
          found = Violation(clause: clause, older: part, newer: other)
        }
      }
    }
    for part in parts {
      arrived[part.key].append(part)
      if arrived[part.key].count > 12 { arrived[part.key].removeFirst() }
    }
    return found
  }

  /// The rule that relates two changes, if either ends or overwrites the other.
  package func clause(older: Part, newer: Part) -> Clause? {
    let (old, new) = (facts[older.key], facts[newer.key])
    if older.key == newer.key {
      if old.isAction { return .orderOfPresses }
      // A message for all members may repeat what one of them has.
      if older.isOfGroup, older.value == newer.value { return nil }
      return older.isOfGroup || newer.isOfGroup ? .orderOfGroups : .orderOfKey
    }
    guard old.device == new.device else { return nil }
    if old.isAction, new.isAction { return .orderOfPresses }
    if new.ends(newer.value, older.key) || old.ends(older.value, newer.key) { return .orderOfEnds }
    if old.excludes.contains(newer.key) || new.excludes.contains(older.key) {
      return .orderOfExcludes
    }
    if new.contradicts(newer.value, older.key, older.value)
      || old.contradicts(older.value, newer.key, newer.value)
    {
      return .orderOfImplies
    }
    return nil
  }
}
