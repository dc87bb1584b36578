// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// What the slow model knows of one key: plain fields, nothing derived is stored.
struct KeyModel {
  /// One accepted value on its way.
  struct Entry {
    var number: UInt64
    var value: Value
    var expiresAt: Moment
    var caller: UInt64
    var transition: Double?
    var collapsed = 0
    var attempt = 1
    var retries = 0
    var isUrgent = false
  }

  /// A command that was handed to the broker.
  struct Flight {
    var entry: Entry
    /// `nil` until the broker acknowledged it; then the latest moment of its confirmation.
    var confirmBy: Moment?
    /// How much a transition adds to the confirmation.
    var grace: Duration
    var isShown = false
    var isEnded = false

    var isSending: Bool { confirmBy == nil }
  }

  /// A step or toggle that waits for the device's state.
  struct Held {
    var change: CommandStateMachine.Change
    var number: UInt64
    var terms: Model.Terms
  }

  // What the definition says.
  var property: Property
  let device: Int
  let lane: Int
  let isAction: Bool
  let canConfirm: Bool
  let ends: [KeyIndex]
  let excluded: [KeyIndex]

  // The queue: what waits for quiet, and the burst it belongs to.
  var queued: Entry?
  var due = Moment.zero
  var base = Moment.zero
  var quietEnd = Moment.zero
  var isBurstOpen = false
  /// A leading value waits for the end of the interval, which the last run began.
  var isLeadingHeld = false
  var intervalEnd = Moment.zero

  // Behind the queue.
  var ready: Entry?
  var flight: Flight?
  var held: [Held] = []
  var heldUntil = Moment.zero
  /// Nothing may leave, for the journal's sake.
  var isWithheld = false
  /// Except an urgent value that has waited for long enough.
  var isUrgentDue = false

  // What is known of the device.
  var actual: Value?
  var lastSent: Value?
  /// Whether commands were sent since it was last certain where the device stands.
  var isUncertain = false
  /// Where it stood then.
  var start: Value?
  /// All values that were given up since then.
  var passed: [Value] = []

  // What is shown.
  var phase: Phase?
  var newest: UInt64 = 0

  /// The value on its way, unless its command has ended.
  var standing: Value? {
    guard let flight, !flight.isEnded else { return nil }
    return flight.entry.value
  }

  var target: Value? {
    isAction ? nil : queued?.value ?? ready?.value ?? standing ?? lastSent ?? actual
  }

  var isSending: Bool { flight?.isSending ?? false }

  var hasNewer: Bool { ready != nil || queued != nil }

  mutating func becomeCertain() {
    isUncertain = false
    start = nil
    passed = []
  }
}
