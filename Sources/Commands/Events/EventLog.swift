// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// What happened to commands, until the owner removes it: events, counts, and what keys show.
///
/// Where nobody watches, `accepted`, `superseded` and `sending` are emitted only for changes that
/// have an origin: for plain MQTT messages there is no one to read them.
package struct EventLog {
  /// What happened, in order.
  package var events: [CommandEvent] = []
  package var statuses: StatusTable
  package internal(set) var statistics = CommandStatistics()
  /// Whether someone receives every event of every command.
  package var isWatched = false
  /// Whether a journal keeps accepted values: it receives every event, and with `accepted` all that
  /// it needs to resume the value.
  package var isJournalled = false
  /// The number of the newest change, or of something that was rejected without being one.
  private(set) var newestNumber: UInt64 = 0

  init(keys: Int) { statuses = StatusTable(keys: keys) }

  /// A number for a change, or for something that is rejected without being one.
  package mutating func nextNumber() -> UInt64 {
    newestNumber += 1
    return newestNumber
  }

  /// Whether `accepted`, `superseded` and `sending` are emitted for this change.
  func hasReader(of change: borrowing PendingChange) -> Bool {
    isWatched || isJournalled || change.origin != nil
  }

  /// Emits a phase of a command.
  mutating func emit(
    _ phase: Phase,
    of command: Command,
    reason: String? = nil,
    for key: KeyIndex,
    _ facts: PropertyFacts,
    at now: Moment
  ) {
    emit(
      phase,
      of: command.change,
      collapsed: command.collapsed,
      attempt: command.attempt,
      reason: reason,
      for: key,
      facts,
      at: now
    )
  }

  /// Emits a phase of an accepted value.
  @inline(__always)
  mutating func emit(
    _ phase: Phase,
    of change: PendingChange,
    collapsed: Int = 0,
    attempt: Int = 1,
    reason: String? = nil,
    isUrgent: Bool = false,
    for key: KeyIndex,
    _ facts: PropertyFacts,
    at now: Moment
  ) {
    statuses.record(phase, of: change.number, for: key, at: now)
    // A key shows how many actions wait, whichever of them this is.
    if facts.isAction { statuses.markChanged(key) }
    switch phase {
    case .accepted, .superseded, .sending:
      guard hasReader(of: change) else { return }
    case .unchanged: statistics.unchanged += 1
    case .confirmed: statistics.confirmed += 1
    case .failed: statistics.failed += 1
    case .expired: statistics.expired += 1
    case .cancelled, .rejected, .sent: break
    }
    events.append(
      CommandEvent(
        key: key,
        phase: phase,
        value: change.value,
        collapsed: collapsed,
        number: change.number,
        acceptedAt: change.acceptedAt,
        at: now,
        attempt: attempt,
        reason: reason,
        origin: change.origin,
        isFinal: phase.isFinal(canConfirm: facts.canConfirm),
        expiresAt: isJournalled ? change.expiresAt : nil,
        options: isJournalled ? change.members : nil,
        isUrgent: isUrgent,
        isAction: facts.isAction
      )
    )
  }

  /// Emits that a value was accepted; of a sleeping device, what its command waits for.
  @inline(__always)
  mutating func emitAccepted(
    _ change: PendingChange,
    isUrgent: Bool,
    for key: KeyIndex,
    _ facts: PropertyFacts,
    at now: Moment
  ) {
    guard facts.sleeps else {
      return emit(.accepted, of: change, isUrgent: isUrgent, for: key, facts, at: now)
    }
    emit(
      .accepted,
      of: change,
      reason: SleeperTable.reason,
      isUrgent: isUrgent,
      for: key,
      facts,
      at: now
    )
  }

  /// Emits that a change was rejected before it was one, because its value could not be read.
  ///
  /// - Returns: The number of the event.
  @discardableResult
  package mutating func reject(
    _ key: KeyIndex,
    reason: String,
    at now: Moment,
    origin: ChangeOrigin? = nil
  ) -> UInt64 {
    let number = nextNumber()
    emitEnd(
      .rejected,
      number: number,
      receivedAt: now,
      reason: reason,
      origin: origin,
      for: key,
      at: now
    )
    return number
  }

  /// Emits the end of a value that an earlier process accepted and that is not resumed.
  package mutating func expireUnresumed(
    _ value: Value?,
    of key: KeyIndex,
    at now: Moment,
    origin: ChangeOrigin?,
    reason: String
  ) {
    statistics.expired += 1
    emitEnd(
      .expired,
      value: value,
      number: nextNumber(),
      receivedAt: now,
      reason: reason,
      origin: origin,
      for: key,
      at: now
    )
  }

  /// Records a phase of a group's command, which the status of its key then shows.
  package mutating func recordGroupPhase(
    _ phase: Phase,
    of number: UInt64,
    for key: KeyIndex,
    at now: Moment
  ) {
    statuses.record(phase, of: number, for: key, at: now)
  }

  /// Emits the only or last phase of something that was not accepted here.
  mutating func emitEnd(
    _ phase: Phase,
    value: Value? = nil,
    number: UInt64,
    receivedAt: Moment,
    reason: String?,
    origin: ChangeOrigin?,
    for key: KeyIndex,
    at now: Moment
  ) {
    events.append(
      CommandEvent(
        key: key,
        phase: phase,
        value: value,
        collapsed: 0,
        number: number,
        acceptedAt: receivedAt,
        at: now,
        attempt: 1,
        reason: reason,
        origin: origin,
        isFinal: true
      )
    )
  }
}

/// How often durations fell between fixed bounds; recording one costs a few comparisons.
package struct DurationHistogram: Sendable {
  /// The upper bounds in ascending order, each included in its bucket.
  package let bounds: [Duration]
  /// One count per bound, and one for everything above.
  package private(set) var counts: [UInt64]
  package private(set) var sum: Duration = .zero

  package init(bounds: [Duration]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  package mutating func record(_ duration: Duration) {
    sum += duration
    var place = 0
    while place < bounds.count, duration > bounds[place] { place += 1 }
    counts[place] += 1
  }
}

/// Counts of a ``CommandStateMachine`` since the start.
package struct CommandStatistics: Sendable {
  package var changes: UInt64 = 0
  package var rejected: UInt64 = 0
  package var collapsed: UInt64 = 0
  package var unchanged: UInt64 = 0
  package var published: UInt64 = 0
  package var acknowledged: UInt64 = 0
  package var confirmed: UInt64 = 0
  package var failed: UInt64 = 0
  package var expired: UInt64 = 0
  /// The longest time between a value's deadline and its leaving the queue.
  package var worstLateness: Duration = .zero
  /// Those times.
  package var lateness = DurationHistogram(
    bounds: [100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 1_000_000]
      .map { .microseconds($0) }
  )

  /// Counts a value that leaves the queue so long after its deadline.
  mutating func record(lateness duration: Duration) {
    worstLateness = max(worstLateness, duration)
    lateness.record(duration)
  }
}

/// One step in a command's life.
package struct CommandEvent: Sendable {
  package var key: KeyIndex
  package var phase: Phase
  /// `nil` while a step waits for the device's state.
  package var value: Value?
  package var collapsed: Int
  package var number: UInt64
  package var acceptedAt: Moment
  package var at: Moment
  package var attempt: Int
  package var reason: String?
  package var origin: ChangeOrigin?
  /// Nothing follows for this command.
  package var isFinal: Bool
  /// Until when an accepted value may wait; told to a journal alone.
  package var expiresAt: Moment?
  /// What rides with an accepted value; told to a journal alone.
  package var options: [JSONValue.Member]?
  /// The accepted value leaves at once.
  package var isUrgent = false
  /// The key stands for momentary commands rather than a value.
  package var isAction = false
  /// Rejected because the journal could not keep the value.
  package var isNotDurable = false
}
