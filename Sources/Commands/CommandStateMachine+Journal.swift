// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
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

  /// Resumes a value that an earlier process accepted: it is sent as soon as its lane lets it, or
  /// with `settles` after a new quiet period.
  ///
  /// Nothing newer of the key may have been accepted since. No `accepted` is emitted. Of the keys
  /// that the value ends, only the commands of `ended` end: those that are older. Those of `riders` are
  /// sent with it.
  ///
  /// - Returns: The number that its events carry.
  package mutating func resume(
    _ value: Value,
    of key: KeyIndex,
    ending ended: [KeyIndex]? = nil,
    with riders: [KeyIndex] = [],
    settles: Bool = false,
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
    endContradicting(value, of: key, among: ended, at: now)
    for rider in riders { dispatcher.sendQueue.ride(rider) }
    let number = change.number
    if settles, !isUrgent {
      dispatcher.enqueue(change, for: key, at: now)
    } else {
      dispatcher.makeReady(Command(change: change, isUrgent: isUrgent), for: key, at: now)
    }
    return number
  }

  /// The keys among `rivals` whose commands wait and can be sent with one of `key` that they contradict.
  package func riders(of key: KeyIndex, among rivals: [KeyIndex]) -> [KeyIndex] {
    let relations = dispatcher.relations[key]
    return rivals.filter { rival in
      relations.implying.contains { $0.key == rival } && relations.mergeGroup.contains(rival)
        && dispatcher.sendQueue.hasCommand(rival)
    }
  }

  /// Forgets what waits and what is in flight of `key`, and what its device has.
  ///
  /// Another process drives it from now on. The events that tell of it are the owner's to drop.
  package mutating func forget(_ key: KeyIndex, at now: Moment) {
    end(key, as: .cancelled, reason: "another gateway drives it", at: now)
    dispatcher.deliveries.update(key) { $0 = Delivery() }
    dispatcher.deliveries.forgetReception(of: key, keepsHeard: false)
    dispatcher.refreshTarget(key)
  }

  /// Shows what another process says of `key`, which that one drives.
  package mutating func show(_ status: KeyStatus, of key: KeyIndex) {
    dispatcher.deliveries.update(key) { $0.show(status.actual) }
    dispatcher.log.statuses.show(status, of: key)
  }

  /// Gives lanes other limits, until the next reload.
  package mutating func setLaneLimits(_ limits: [String: LaneLimits], at now: Moment) {
    dispatcher.sendQueue.setLimits(limits, at: now)
  }

  /// Who has asked for the command of `key` that was handed to MQTT and has not ended.
  package func originInFlight(_ key: KeyIndex) -> ChangeOrigin? {
    guard let flight = dispatcher.deliveries[key].inFlight, !flight.isEnded else { return nil }
    return flight.command.change.origin
  }

  /// Whether a command of `key` was handed to the broker and has no answer yet.
  package func isInFlight(_ key: KeyIndex) -> Bool {
    dispatcher.sendQueue.awaitsAcknowledgement(key)
  }

  /// Whether anything of `key` waits that ``refuseWaiting(_:reason:at:)`` would reject.
  package func hasRefusable(_ key: KeyIndex) -> Bool {
    dispatcher.queue.isPending(key) || waitingSteps.contains(key)
      || dispatcher.sendQueue[key].map { !$0.isUrgent } ?? false
  }

  /// Whether an urgent command of `key` waits to be sent.
  package func isUrgentWaiting(_ key: KeyIndex) -> Bool {
    dispatcher.sendQueue[key]?.isUrgent ?? false
  }

  /// Rejects after all what waits of `key`, because it could not be made durable; an urgent command
  /// still waits.
  package mutating func refuseWaiting(_ key: KeyIndex, reason: String, at now: Moment) {
    guard endWaiting(key, as: .rejected, reason: reason, exceptUrgent: true, at: now) else {
      return
    }
    dispatcher.log.statistics.rejected += 1
    dispatcher.refreshTarget(key)
  }
}
