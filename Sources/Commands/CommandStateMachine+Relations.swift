// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// The rules between keys: which commands of other keys a value ends.
extension CommandStateMachine {
  /// Why a command ended that an urgent value overrides.
  static var urgent: String { "urgent" }

  /// The other keys of which nothing older may follow `value` of `key`: it ends their commands, or their
  /// urgent values end its own.
  ///
  /// `nil` stands for a value that is not known, which ends what all values end. Of a value that
  /// `isAccepted` the commands that it contradicts have ended.
  package func rivals(
    of key: KeyIndex,
    _ value: Value?,
    isUrgent: Bool,
    isAccepted: Bool
  ) -> [Rival] {
    let rivals =
      isUrgent ? dispatcher.relations[key].urgentRivals : dispatcher.relations[key].rivals
    guard dispatcher.facts[key].hasImplications, let value else { return rivals }
    return rivals + contradicted(by: value, of: key, isAccepted: isAccepted)
  }

  /// Ends the commands of other keys that a new value of `key` ends; of `keys` alone, if given.
  mutating func endRelated(
    to key: KeyIndex,
    among keys: [KeyIndex]? = nil,
    isUrgent: Bool,
    at now: Moment
  ) {
    if isUrgent {
      for other in dispatcher.relations[key].ends where keys?.contains(other) ?? true {
        end(other, as: .cancelled, reason: Self.urgent, at: now)
      }
    }
    endExcluded(by: key, among: keys, at: now)
  }

  /// Ends the commands of other keys that a value ends that is not urgent.
  @inline(never)
  mutating func endOthers(by value: Value, of key: KeyIndex, rides: Bool, at now: Moment) {
    endExcluded(by: key, at: now)
    endContradicting(value, of: key, rides: rides, at: now)
  }

  /// Of keys that exclude each other the newer keeps its value.
  mutating func endExcluded(by key: KeyIndex, among keys: [KeyIndex]? = nil, at now: Moment) {
    guard dispatcher.facts[key].hasExcluded else { return }
    let reason = "replaced by \(registry.definition(of: key).property.id)"
    for other in dispatcher.relations[key].excluded where keys?.contains(other) ?? true {
      end(other, as: .superseded, reason: reason, at: now)
    }
  }

  /// Someone set a value at the device: if it is urgent, the commands that it ends are over.
  mutating func endOthersByHand(_ value: Value, of key: KeyIndex, at now: Moment) {
    endContradictingByHand(value, of: key, at: now)
    guard dispatcher.isUrgent(value, of: key) else { return }
    for other in dispatcher.relations[key].ends {
      dispatcher.endRepetition(of: other, reason: Delivery.changedByHand, at: now)
      dispatcher.abandon(other, as: .superseded, reason: Delivery.changedByHand, at: now)
    }
  }

  /// Ends everything of `key`, in flight or not.
  mutating func end(_ key: KeyIndex, as phase: Phase, reason: String, at now: Moment) {
    endWaiting(key, as: phase, reason: reason, at: now)
    dispatcher.abandon(key, as: phase, reason: reason, at: now)
  }
}
