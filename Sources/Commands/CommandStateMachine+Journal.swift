// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut

/// What a journal beside the machine asks of it.
extension CommandStateMachine {
  /// Lets nothing of `key` leave until ``release(_:at:)``, except an urgent value with
  /// `exceptUrgent`; it goes on to settle and to be replaced.
  package mutating func withhold(
    _ key: KeyIndex,
    exceptUrgent: Bool = false,
    at now: Moment
  ) {
    states[Int(key.rawValue)].isWithheld = true
    states[Int(key.rawValue)].mayUrgentLeave = exceptUrgent
    takeRoad(key, at: now)
  }

  /// Lets `key` leave again.
  package mutating func release(_ key: KeyIndex, at now: Moment) {
    guard states[Int(key.rawValue)].isWithheld else { return }
    states[Int(key.rawValue)].isWithheld = false
    takeRoad(key, at: now)
  }

  /// Takes up a value that was accepted before a restart: it has been quiet for long enough, and
  /// leaves as soon as its road is free.
  ///
  /// Nothing newer of the key may have been accepted since. No `accepted` is emitted: an earlier
  /// process did that. Of the keys that it ends, only the commands of `ended` end:
  /// those that are older.
  ///
  /// - Returns: The number that its events carry.
  package mutating func resume(
    _ value: Value,
    of key: KeyIndex,
    ending ended: [KeyIndex]? = nil,
    at now: Moment,
    expiresAt: Moment,
    origin: ChangeOrigin?,
    options: [JSONValue.Member]?
  ) -> UInt64 {
    let place = Int(key.rawValue)
    let change = PendingChange(
      value: value,
      number: nextNumber(),
      acceptedAt: now,
      expiresAt: expiresAt,
      origin: origin,
      options: options,
      isReplayed: true
    )
    states[place].newest = change.number
    states[place].phase = .accepted
    states[place].changedAt = now
    note(key)
    setTarget(value, of: key)
    let isUrgent = isUrgent(value, of: key)
    endRelated(to: key, among: ended, isUrgent: isUrgent, at: now)
    makeReady(change, for: key, collapsed: 0, isUrgent: isUrgent, at: now)
    return change.number
  }

  /// The other keys whose commands end when `key` gets a value.
  package func keysEnded(by key: KeyIndex, isUrgent: Bool) -> [KeyIndex] {
    let facts = facts[Int(key.rawValue)]
    return isUrgent ? facts.ends + facts.excluded : facts.excluded
  }

  /// Tells the end of a value that was accepted before a restart and is not taken up.
  package mutating func expireUnresumed(
    _ value: Value?,
    of key: KeyIndex,
    at now: Moment,
    origin: ChangeOrigin?,
    reason: String
  ) {
    statistics.expired += 1
    events.append(
      CommandEvent(
        key: key,
        phase: .expired,
        value: value,
        collapsed: 0,
        number: nextNumber(),
        acceptedAt: now,
        at: now,
        attempt: 1,
        reason: reason,
        origin: origin,
        isFinal: true
      )
    )
  }

  /// Refuses after all what waits of `key`: it could not be kept.
  package mutating func refuseWaiting(_ key: KeyIndex, reason: String, at now: Moment) {
    guard endWaiting(key, as: .rejected, reason: reason, at: now) else { return }
    statistics.rejected += 1
    refreshTarget(key)
  }
}
