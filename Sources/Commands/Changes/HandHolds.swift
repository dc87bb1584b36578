// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// Which keys a person has changed lately: automation must leave them alone for a time.
///
/// It has at most one entry for each key with a ``HoldRule``, which needs no timer: one that has
/// ended counts as absent. Entries are not stored, so a restart ends them.
package struct HandHolds {
  /// A person's hold of one key.
  private struct Hold {
    var source: String
    var until: Moment
  }

  /// The source of changes by plain MQTT messages, which name none.
  static let plainSource = "mqtt"

  private var holds: [KeyIndex: Hold] = [:]

  /// Who holds `key`, and until when; `nil` when nobody does.
  package func holder(of key: KeyIndex, at now: Moment) -> (source: String, until: Moment)? {
    guard let hold = holds[key], now < hold.until else { return nil }
    return (hold.source, hold.until)
  }

  /// Checks that a change is allowed; an urgent value always is, because a stop must work.
  ///
  /// - Throws: `held` if a person holds the key and the change does not come from a person.
  @inline(never)
  package func check(
    _ change: ValueChange,
    of key: KeyIndex,
    from origin: ChangeOrigin?,
    in machine: borrowing CommandStateMachine,
    at now: Moment
  ) throws(ValidationError) {
    guard machine.facts[key].hasHold,
      let rule = machine.registry.definition(of: key).property.hold,
      let holder = holder(of: key, at: now)
    else { return }
    if case .set(let value) = change, machine.isUrgent(value, of: key) { return }
    // What a device gets back is what was wanted before.
    if origin?.source == ChangeOrigin.restore { return }
    guard !rule.isHand(origin?.source ?? Self.plainSource) else { return }
    throw .held(by: holder.source)
  }

  /// Checks values that are accepted together.
  ///
  /// - Throws: `held`, with the property.
  @inline(never)
  package func check(
    _ values: [(key: KeyIndex, value: Value)],
    from origin: ChangeOrigin?,
    in machine: borrowing CommandStateMachine,
    at now: Moment
  ) throws(ValidationError) {
    for (key, value) in values {
      do throws(ValidationError) {
        try check(.set(value), of: key, from: origin, in: machine, at: now)
      } catch {
        throw .inProperty(machine.registry.definition(of: key).property.id, error)
      }
    }
  }

  /// Begins or renews the hold of `key`, if `source` is a person.
  @inline(never)
  mutating func record(_ source: String?, of key: KeyIndex, _ rule: HoldRule, at now: Moment) {
    let source = source ?? Self.plainSource
    guard rule.isHand(source) else { return }
    holds[key] = Hold(source: source, until: now.advanced(by: rule.duration))
  }

  /// Ends the hold of a key whose definition no longer has one.
  mutating func end(_ key: KeyIndex) { holds[key] = nil }

  var isEmpty: Bool { holds.isEmpty }
}
