// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What the machine knows of one key beside its place in the queue.
struct PropertyState {
  /// What was asked for last; moves at once with the change.
  var target: Value?
  /// The target was set since the owner last asked.
  var hasNewTarget = false
  /// What the device last reported.
  var actual: Value?
  /// What the device has acknowledged and may still be moving to.
  var arriving: Value?
  /// What was sent last where `sent` is the end; gone with the next report.
  var lastSent: Value?
  /// The phase of the newest command.
  var phase: Phase?
  /// The number of the newest command that had a phase.
  var newest: UInt64 = 0
  /// When the phase or the actual value last changed.
  var changedAt: Moment?
  /// Left the queue and waits for its road; newest wins.
  var ready: ReadyValue?
  /// Handed to MQTT, or sent and not yet confirmed.
  var onItsWay: Outstanding?
  /// Nothing of the key may leave: see ``CommandStateMachine/withhold(_:at:)``.
  var isWithheld = false
  /// An urgent value may leave although the key is withheld.
  var mayUrgentLeave = false
  /// What the device may show on its way.
  var approach = Approach()

  /// What the waiting value asks of its road: whether it is urgent, whether it was sent before, and
  /// until when it may wait.
  ///
  /// Mutating, as the next: the element of an array is then looked at in place instead of copied.
  var readyTerms: (isUrgent: Bool, isRepeated: Bool, expiresAt: Moment)? {
    mutating get {
      guard let isUrgent = ready?.isUrgent, let attempt = ready?.attempt,
        let expiresAt = ready?.change.expiresAt
      else { return nil }
      return (isUrgent, attempt > 1, expiresAt)
    }
  }

  /// The target where nothing waits in the queue: what is nearest to leaving, else what was there.
  var settledTarget: Value? {
    mutating get {
      if let value = ready?.change.value { return value }
      if onItsWay?.isEnded == false, let value = onItsWay?.change.value { return value }
      return arriving ?? lastSent ?? actual
    }
  }

  /// Sets the target; `false` when it was the same.
  @inline(__always)
  mutating func setTarget(_ target: Value?) -> Bool {
    // Most targets are numbers, which are compared at once.
    if case .number(let new)? = target, case .number(let old)? = self.target {
      if new == old { return false }
    } else if self.target == target {
      return false
    }
    self.target = target
    hasNewTarget = true
    return true
  }

  /// Notes a phase of the newest command; `false` for older ones.
  @inline(__always)
  mutating func note(_ phase: Phase, of number: UInt64, at now: Moment) -> Bool {
    guard number >= newest else { return false }
    newest = number
    self.phase = phase
    changedAt = now
    return true
  }
}

/// A value that has settled and waits for its lane, an earlier acknowledgement, or an absent party.
struct ReadyValue {
  var change: PendingChange
  var collapsed: Int
  /// The attempt it will be, counted from one; resends after a lost connection included.
  var attempt: Int
  /// Attempts made because no confirmation came.
  var retries: Int
  var isUrgent: Bool
}

/// A command that was handed to MQTT.
struct Outstanding {
  enum Stage {
    /// Waiting for the broker's acknowledgement.
    case sending
    /// Acknowledged; waiting for the device to show the value.
    case sent
  }

  var change: PendingChange
  var collapsed: Int
  var attempt: Int
  /// Attempts made because no confirmation came.
  var retries: Int
  var isUrgent: Bool
  /// How much longer a confirmation may take because of a `transition`.
  var transition: Duration
  var stage = Stage.sending
  /// The device showed the value before the acknowledgement came.
  var isShown = false
  /// The number of the message, which a reply repeats.
  var message: Int64
  /// The device acknowledged the value before the broker did.
  var isTaken = false
  /// The device refused the value before the broker acknowledged it.
  var refusal: String?
  /// Ended while its acknowledgement was still under way: whatever comes back is not told.
  var isEnded = false
}
