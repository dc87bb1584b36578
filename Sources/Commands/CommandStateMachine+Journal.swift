// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// What a journal asks for.
extension CommandStateMachine {
  /// Sends nothing of `key` until ``release(_:)``; with `exceptUrgent`, nothing but an urgent value.
  ///
  /// Its values go on to settle and to be replaced.
  package mutating func withhold(_ key: KeyIndex, exceptUrgent: Bool = false) {
    dispatcher.sendQueue.withhold(key, exceptUrgent: exceptUrgent)
  }

  /// Sends values of `key` again.
  package mutating func release(_ key: KeyIndex) { dispatcher.sendQueue.release(key) }

  /// Resumes a value that an earlier process accepted: it is sent as soon as its lane lets it.
  ///
  /// Nothing newer of the key may have been accepted since. No `accepted` is emitted. Of the keys
  /// that the value ends, only the commands of `ended` end: those that are older.
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
    migrate(key, at: now)
    let change = PendingChange(
      value: value,
      number: dispatcher.log.nextNumber(),
      acceptedAt: now,
      expiresAt: expiresAt,
      origin: origin,
      members: options,
      isReplayed: true
    )
    dispatcher.log.statuses.record(.accepted, of: change.number, for: key, at: now)
    dispatcher.setTarget(value, of: key)
    let isUrgent = dispatcher.isUrgent(value, of: key)
    endRelated(to: key, among: ended, isUrgent: isUrgent, at: now)
    dispatcher.makeReady(Command(change: change, isUrgent: isUrgent), for: key, at: now)
    return change.number
  }

  /// Rejects after all what waits of `key`, because it could not be made durable.
  package mutating func refuseWaiting(_ key: KeyIndex, reason: String, at now: Moment) {
    guard endWaiting(key, as: .rejected, reason: reason, at: now) else { return }
    dispatcher.log.statistics.rejected += 1
    dispatcher.refreshTarget(key)
  }
}
