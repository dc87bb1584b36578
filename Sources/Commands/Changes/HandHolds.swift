// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// Which keys a person has changed lately: automation must leave them alone for a time.
///
/// It has at most one entry for each key with a ``HoldRule``, which needs no timer: one that has ended
/// counts as absent. Entries are not stored, so a restart ends them.
struct HandHolds {
  /// A person's hold of one key.
  private struct Hold {
    var source: String
    var until: Moment
  }

  /// The source of changes by plain MQTT messages, which name none.
  static let plainSource = "mqtt"

  private var holds: [KeyIndex: Hold] = [:]

  /// Who holds `key`, and until when; `nil` when nobody does.
  func holder(of key: KeyIndex, at now: Moment) -> (source: String, until: Moment)? {
    guard let hold = holds[key], now < hold.until else { return nil }
    return (hold.source, hold.until)
  }

  /// Checks that a change from `source` is allowed.
  ///
  /// - Throws: `held` if a person holds the key and `source` is none of the `rule`'s hands.
  func check(
    _ source: String,
    of key: KeyIndex,
    _ rule: HoldRule,
    at now: Moment
  ) throws(ValidationError) {
    guard let holder = holder(of: key, at: now), !rule.isHand(source) else { return }
    throw .held(by: holder.source)
  }

  /// Begins or renews the hold of `key`, if `source` is a person.
  mutating func record(_ source: String, of key: KeyIndex, _ rule: HoldRule, at now: Moment) {
    guard rule.isHand(source) else { return }
    holds[key] = Hold(source: source, until: now.advanced(by: rule.duration))
  }

  /// Ends the hold of a key whose definition no longer has one.
  mutating func end(_ key: KeyIndex) { holds[key] = nil }

  var isEmpty: Bool { holds.isEmpty }
}

/// Changes of properties that a person can hold.
extension CommandStateMachine {
  /// Who holds a key against changes from other sources, and until when; `nil` when nobody does.
  package func holder(of key: KeyIndex, at now: Moment) -> (source: String, until: Moment)? {
    dispatcher.facts[key].hasHold ? holds.holder(of: key, at: now) : nil
  }

  /// Checks that a change is allowed; an urgent value always is, because a stop must work.
  ///
  /// - Throws: `held`.
  package func checkHold(
    of key: KeyIndex,
    against change: ValueChange,
    from origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    guard dispatcher.facts[key].hasHold, let rule = registry[key].property.hold else { return }
    if case .set(let value) = change, dispatcher.isUrgent(value, of: key) { return }
    try holds.check(origin?.source ?? HandHolds.plainSource, of: key, rule, at: now)
  }

  /// Checks values that are accepted together.
  ///
  /// - Throws: `held`, with the property.
  package func checkHolds(
    of values: [(key: KeyIndex, value: Value)],
    from origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    for (key, value) in values {
      do throws(ValidationError) {
        try checkHold(of: key, against: .set(value), from: origin, at: now)
      } catch {
        throw .inProperty(registry[key].property.id, error)
      }
    }
  }

  /// Begins or renews the hold of a key after a change that was accepted.
  mutating func recordHold(of key: KeyIndex, by source: String?, at now: Moment) {
    guard let rule = registry[key].property.hold else { return }
    holds.record(source ?? HandHolds.plainSource, of: key, rule, at: now)
  }

  /// Ends the hold of a key whose new definition has none.
  mutating func endForeignHold(of key: KeyIndex) {
    guard !holds.isEmpty, !dispatcher.facts[key].hasHold else { return }
    holds.end(key)
  }
}
