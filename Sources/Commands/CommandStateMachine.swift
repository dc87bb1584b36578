// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// Decides what becomes of every change: events and the time go in, publishes and events come out.
///
/// The way of a value: ``change(_:of:at:origin:ttl:options:skipsQuiet:)`` puts it into the last-out
/// queue; ``advance(to:)`` moves what has settled to its road; ``nextPublish(at:)`` hands out what
/// may leave; ``finish(_:_:at:)`` takes the broker's answer; ``reported(_:_:at:)`` the device's.
/// It has no clock, no lock and does no I/O. After any call, the owner drains ``events`` and
/// ``changedKeys``, publishes what may leave, and arms one timer for ``nextDeadline(after:)``.
package struct CommandStateMachine: ~Copyable {
  /// What the machine is told beside the devices.
  package struct Settings: Sendable {
    /// Tokens a second and burst, by lane; a lane not named here is not limited.
    package var lanes: [String: (rate: Double, burst: Int)] = [:]
    /// How many keys may have a pending value.
    package var pendingLimit = 100_000
    /// How long a step waits for the state that was asked for.
    package var stepPatience: Duration = .seconds(2)
    /// What the numbers of messages count from; another one after each start, so that a reply to what
    /// was sent before answers nothing.
    package var firstMessage: UInt64 = 0

    package init() {}
  }

  /// Counts since the start.
  package struct Statistics: Sendable {
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
  }

  package internal(set) var registry: Registry
  package var statistics = Statistics()
  /// What happened, in order; the owner takes them out.
  package var events: [CommandEvent] = []
  /// Keys whose target, actual value or phase changed, possibly more than once each.
  package var changedKeys: [KeyIndex] = []
  /// Whether somebody sees every event, also of changes that nobody waits for.
  package var isWatched = false
  /// Whether somebody keeps what was accepted: every event is told then, with all that the value
  /// brings along.
  package var isJournalled = false

  /// Whether steps that had waited are kept in ``appliedSteps``.
  package var notesAppliedSteps = false
  /// Steps that had waited for their device's state, in the order in which they were taken then;
  /// the owner takes them out.
  package var appliedSteps: [AppliedStep] = []

  var settings: Settings
  var facts: [PropertyFacts]
  var core: LastOutCore<PendingChange>
  var states: [PropertyState]
  var devices: [DeviceState]
  var lanes: LaneTable
  var flights = FlightTable()
  var deadlines: DeadlineHeap
  /// Steps that wait for a key's state; no entry is empty.
  var heldSteps: [KeyIndex: [HeldStep]] = [:]
  var isConnected = false
  var isClosing = false
  var changeNumber: UInt64 = 0
  /// Values that left the queue and wait.
  var readyCount = 0
  /// Commands that wait for the broker's acknowledgement.
  var sendingCount = 0

  package init(registry: Registry, settings: Settings = Settings()) {
    let keys = registry.properties.count
    self.registry = registry
    self.settings = settings
    facts = PropertyFacts.all(in: registry)
    core = LastOutCore(policy: .standard, capacity: max(keys, 1))
    states = Array(repeating: PropertyState(), count: keys)
    devices = registry.devices.map { DeviceState(sources: $0.availability.count) }
    lanes = LaneTable(registry: registry, limits: settings.lanes, continuing: nil, at: .zero)
    deadlines = DeadlineHeap(keys: keys)
    for (position, entry) in registry.properties.enumerated() {
      core.setPolicy(entry.property.policy, for: KeyIndex(Int32(position)))
    }
  }

  /// The next moment at which ``advance(to:)`` or ``nextPublish(at:)`` has something to do; `nil`
  /// with nothing to wait for.
  package func nextDeadline(after now: Moment) -> Moment? {
    var earliest = core.nextDeadline
    if let first = deadlines.first { earliest = min(earliest ?? first.at, first.at) }
    if isConnected, !isClosing, let token = lanes.nextToken(after: now) {
      earliest = min(earliest ?? token, token)
    }
    return earliest
  }

  /// Moves on everything that is due: settled values to their roads, late ones to their end.
  package mutating func advance(to now: Moment) {
    while let run = core.nextRun(at: now) {
      let lateness = run.due.duration(to: now)
      if lateness > statistics.worstLateness { statistics.worstLateness = lateness }
      statistics.lateness.note(lateness)
      settle(run, at: now)
    }
    while let first = deadlines.first, first.at <= now {
      deadlines.remove(first.kind, of: first.key)
      passed(first, at: now)
    }
  }

  // MARK: - Shared by the aspects

  func isOnline(_ key: KeyIndex) -> Bool {
    isConnected && devices[facts[Int(key.rawValue)].device].isOnline
  }

  /// Whether `key` stands for momentary commands rather than a value.
  package func isAction(_ key: KeyIndex) -> Bool { facts[Int(key.rawValue)].isAction }

  /// Whether `value` is one that leaves at once.
  package func isUrgent(_ value: Value, of key: KeyIndex) -> Bool {
    facts[Int(key.rawValue)].hasUrgent
      && registry.properties[Int(key.rawValue)].property.urgent.contains(value)
  }

  func isSending(_ key: KeyIndex) -> Bool {
    guard let stage = states[Int(key.rawValue)].onItsWay?.stage else { return false }
    switch stage {
    case .sending: return true
    case .sent: return false
    }
  }

  /// Recomputes a key's target from what is nearest to leaving, and notes the change.
  mutating func refreshTarget(_ key: KeyIndex) {
    guard !isAction(key) else { return }
    let place = Int(key.rawValue)
    setTarget(core.pending(key)?.value.value ?? states[place].settledTarget, of: key)
  }

  mutating func setTarget(_ target: Value?, of key: KeyIndex) {
    if states[Int(key.rawValue)].setTarget(target) { note(key) }
  }

  /// The value that is on its way or unconfirmed, unless its command was ended.
  func standingValue(_ place: Int) -> Value? {
    guard states[place].onItsWay?.isEnded == false else { return nil }
    return states[place].onItsWay?.change.value
  }

  /// Notes that something about a key changed.
  @inline(__always)
  mutating func note(_ key: KeyIndex) {
    if changedKeys.last != key { changedKeys.append(key) }
  }

  /// Notes a phase and tells it, to everybody or to those who see every event.
  mutating func tell(
    _ phase: Phase,
    of change: PendingChange,
    for key: KeyIndex,
    collapsed: Int = 0,
    attempt: Int = 1,
    reason: String? = nil,
    isUrgent: Bool = false,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    // What becomes of an older command says nothing about the newest.
    if states[place].note(phase, of: change.number, at: now) { note(key) }
    switch phase {
    case .accepted, .superseded, .sending:
      guard isWatched || isJournalled || change.origin != nil else { return }
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: break
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
        isFinal: phase.isFinal(canConfirm: facts[place].canConfirm),
        expiresAt: isJournalled ? change.expiresAt : nil,
        options: isJournalled ? change.options : nil,
        isUrgent: isUrgent,
        isAction: facts[place].isAction
      )
    )
  }
}
