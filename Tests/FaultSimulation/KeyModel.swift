// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

/// The state of one key in the slow model: plain fields, no derived values.
struct KeyModel {
  /// One accepted value in flight.
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
    /// Whether it is a command under a new number.
    var isReplayed = false
    /// The group's command that it is a part of.
    var group: Model.GroupTag?
    /// The order of the value of an earlier process that it resumes.
    var resumedOrder: UInt64?
  }

  /// A sent command.
  struct Flight {
    var entry: Entry
    /// `nil` until the broker acknowledged it; then the latest moment of its confirmation.
    var confirmBy: Moment?
    /// How much a transition adds to the confirmation.
    var grace: Duration
    var isShown = false
    var isEnded = false
    /// Whether a value has left that must not be followed by this one again.
    var isOvertaken = false

    var isSending: Bool { confirmBy == nil }
  }

  /// A step or toggle that waits for the device's state.
  struct Held {
    var change: ValueChange
    var number: UInt64
    var options: Model.Options
  }

  // The definition.
  var property: Property
  let device: Int
  let lane: Int
  let isAction: Bool
  let canConfirm: Bool
  let ends: [KeyIndex]
  let excluded: [KeyIndex]
  /// Whether the device reports how it moves to a value.
  let travels: Bool

  // The queue: the value that waits for quiet, and its burst.
  var queued: Entry?
  var due = Moment.zero
  var base = Moment.zero
  var quietEnd = Moment.zero
  var isBurstOpen = false
  /// Whether the last change had no quiet period.
  var isInstant = false
  /// A leading value waits for the end of the interval, which the last run began.
  var isLeadingHeld = false
  var intervalEnd = Moment.zero

  /// Values that take turns.
  var turns = TurnModel()

  // Behind the queue.
  var ready: Entry?
  /// The actions that wait behind it, in order.
  var behind: [Entry] = []
  /// Until when the device may move because of an urgent value that has ended those of this key.
  var drivenUntil: Moment?
  /// The first value that was accepted since an urgent one is ready.
  var heir: UInt64?
  /// The urgent value that newer ones have replaced before it was sent, and the first of those.
  var overridden: (entry: Entry, heir: UInt64)?
  var flight: Flight?
  var held: [Held] = []
  var heldUntil = Moment.zero
  /// Whether the journal withholds the key.
  var isWithheld = false
  /// Whether an urgent value has waited long enough to be exempt.
  var isUrgentDue = false

  // The known state of the device.
  var actual: Value?
  var lastSent: Value?
  /// Whether commands were sent since the state of the device was last certain.
  var isUncertain = false
  /// The state at that time.
  var start: Value?
  /// All values that were abandoned since then; of a key that travels, all that were sent or
  /// reported.
  var passed: [Value] = []

  // The time of a key that travels, until it is at rest.
  /// The last confirmed value.
  var goal: Value?
  /// Whether no command was sent after it.
  var isGoalNewest = false
  /// The value of the last command that ended unconfirmed.
  var aim: Value?
  /// Whether something ended the time, and no report has followed.
  var isStopped = false
  /// How long after its last progress the device is at rest.
  var patience = Duration.zero
  var progressAt: Moment?
  /// When the five minutes began.
  var begunAt: Moment?

  // What the members of a group have in common.
  var isGroup = false
  var common: Value?

  // The published state.
  var phase: Phase?
  var newest: UInt64 = 0

  /// The value in flight, unless its command has ended.
  var standing: Value? {
    guard let flight, !flight.isEnded else { return nil }
    return flight.entry.value
  }

  var target: Value? {
    if isGroup { return common }
    return isAction ? nil : queued?.value ?? ready?.value ?? standing ?? goal ?? lastSent ?? actual
  }

  /// When the device is at rest, as far as that is known.
  var restsAt: Moment? {
    guard flight == nil, let limit = begunAt?.advanced(by: .seconds(300)) else { return nil }
    if let progressAt { return min(limit, progressAt.advanced(by: patience)) }
    return goal == nil ? nil : limit
  }

  var isSending: Bool { flight?.isSending ?? false }

  /// Removes and returns the entry that is sent next; the one behind it moves up.
  mutating func takeReady() -> Entry? {
    guard let first = ready else { return nil }
    ready = behind.isEmpty ? nil : behind.removeFirst()
    return first
  }

  var hasNewer: Bool { ready != nil || queued != nil }

  mutating func becomeCertain() {
    isUncertain = false
    start = nil
    passed = []
    goal = nil
    isGoalNewest = false
    aim = nil
    isStopped = false
    progressAt = nil
    begunAt = nil
  }

  /// Nobody waits for the device any more; its next report says where it stands.
  mutating func stop() {
    if let last = goal {
      passed.append(last)
      aim = last
    }
    goal = nil
    isStopped = true
    progressAt = nil
    begunAt = nil
  }

  /// Records that a command ended unconfirmed.
  mutating func pass(_ value: Value) {
    passed.append(value)
    aim = value
  }

  /// Records that the device shows the value of its command.
  mutating func confirm(_ value: Value, at now: Moment) {
    guard travels else { return becomeCertain() }
    goal = value
    isGoalNewest = true
    progressAt = now
  }

  /// Records a report of the way, after one of `before`.
  mutating func move(_ value: Value, from before: Value?, to end: Value?, at now: Moment) {
    guard travels else { return }
    let isIdle = flight == nil && ready.map { $0.attempt == 1 } ?? true
    let wire = property.wireValue(of: value)
    let isAtGoal = isIdle && goal.map { property.isShown($0, by: wire) } ?? false
    if start == nil, !isAtGoal { start = value }
    passed.append(value)
    if isAtGoal, !isGoalNewest {
      isGoalNewest = true
      progressAt = now
    } else if isIdle, progressAt == nil {
      begunAt = now
      progressAt = now
    } else if case .number(let number) = value, case .number(let end)? = end {
      guard case .number(let last)? = before else { return progressAt = now }
      if abs(number - end) < abs(last - end) { progressAt = now }
    }
  }
}
