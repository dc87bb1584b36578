// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// Decides what becomes of every change: events and the time go in, publishes and events come out.
///
/// The way of a value: ``change(_:of:at:origin:options:)`` puts it into the last-out queue;
/// ``advance(to:)`` moves what has settled to its road; ``nextPublish(at:)`` hands out what may
/// leave; ``finish(_:_:at:)`` takes the broker's answer; ``reported(_:_:at:)`` the device's.
/// It has no clock, no lock and does no I/O. After any call, the owner drains ``events`` and
/// ``changedKeys`` and arms one timer for ``nextDeadline``.
package struct CommandStateMachine: ~Copyable {
  /// What the machine is told beside the devices.
  package struct Settings: Sendable {
    /// Tokens a second and burst, by lane; a lane not named here is not limited.
    package var lanes: [String: (rate: Double, burst: Int)] = [:]
    /// How many keys may have a pending value.
    package var pendingLimit = 100_000
    /// How long a step waits for the state that was asked for.
    package var stepPatience: Duration = .seconds(2)

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
  }

  package let registry: Registry
  package var statistics = Statistics()
  /// What happened, in order; the owner takes them out.
  package var events: [CommandEvent] = []
  /// Keys whose target, actual value or phase changed, possibly more than once each.
  package var changedKeys: [KeyIndex] = []
  /// Whether somebody sees every event, also of changes that nobody waits for.
  package var isWatched = false

  let settings: Settings
  var core: LastOutCore<PendingChange>
  var states: [PropertyState]
  var devices: [DeviceState]
  var lanes: [Lane]
  var laneCursor = 0
  var flights = FlightTable()
  var deadlines = DeadlineHeap()
  var heldSteps: [KeyIndex: HeldSteps] = [:]
  var isConnected = false
  var isClosing = false
  var changeNumber: UInt64 = 0
  var lastStamp: UInt32 = 0
  /// Values that left the queue and wait.
  var readyCount = 0
  /// Commands that wait for the broker's acknowledgement.
  var sendingCount = 0

  package init(registry: Registry, settings: Settings = Settings()) {
    self.registry = registry
    self.settings = settings
    core = LastOutCore(policy: .standard, capacity: max(registry.properties.count, 1))
    states = Array(repeating: PropertyState(), count: registry.properties.count)
    lanes = [Lane()]
    var numbers: [String: Int] = [:]
    devices = []
    devices.reserveCapacity(registry.devices.count)
    for device in registry.devices {
      var lane = 0
      if let name = device.lane, let limit = settings.lanes[name] {
        if let number = numbers[name] {
          lane = number
        } else {
          lane = lanes.count
          numbers[name] = lane
          lanes.append(Lane(bucket: TokenBucket(rate: limit.rate, burst: limit.burst)))
        }
      }
      devices.append(DeviceState(lane: lane, sources: device.availability.count))
    }
    for (position, entry) in registry.properties.enumerated() {
      core.setPolicy(entry.property.policy, for: KeyIndex(Int32(position)))
    }
  }

  /// The next moment at which ``advance(to:)`` has something to do; `nil` with nothing to wait for.
  package mutating func nextDeadline(after now: Moment) -> Moment? {
    while let first = deadlines.first, !isAlive(first) { deadlines.removeFirst() }
    var earliest = core.nextDeadline
    if let first = deadlines.first { earliest = min(earliest ?? first.at, first.at) }
    if isConnected, !isClosing {
      for position in lanes.indices {
        if let token = lanes[position].nextToken(after: now), token > now {
          earliest = min(earliest ?? token, token)
        }
      }
    }
    return earliest
  }

  /// Moves on everything that is due: settled values to their roads, late ones to their end.
  package mutating func advance(to now: Moment) {
    while let run = core.nextRun(at: now) {
      let lateness = run.due.duration(to: now)
      if lateness > statistics.worstLateness { statistics.worstLateness = lateness }
      settle(run, at: now)
    }
    while let first = deadlines.first, first.at <= now {
      deadlines.removeFirst()
      if isAlive(first) { passed(first, at: now) }
    }
  }

  // MARK: - Shared by the aspects

  func property(_ key: KeyIndex) -> Property { registry.properties[Int(key.rawValue)].property }

  func deviceNumber(_ key: KeyIndex) -> Int { registry.properties[Int(key.rawValue)].device }

  func isOnline(_ key: KeyIndex) -> Bool { isConnected && devices[deviceNumber(key)].isOnline }

  mutating func newStamp() -> UInt32 {
    lastStamp &+= 1
    return lastStamp
  }

  /// Recomputes a key's target from what is nearest to leaving, and notes the change.
  mutating func refreshTarget(_ key: KeyIndex) {
    let place = Int(key.rawValue)
    let target =
      core.pending(key)?.value.value ?? states[place].ready?.change.value
      ?? standing(states[place].onItsWay) ?? states[place].actual ?? states[place].lastSent
    setTarget(target, of: key)
  }

  mutating func setTarget(_ target: Value?, of key: KeyIndex) {
    guard states[Int(key.rawValue)].target != target else { return }
    states[Int(key.rawValue)].target = target
    changedKeys.append(key)
  }

  private func standing(_ outstanding: Outstanding?) -> Value? {
    guard let outstanding, !outstanding.isEnded else { return nil }
    return outstanding.change.value
  }

  /// Notes a phase and tells it, to everybody or to those who see every event.
  mutating func tell(
    _ phase: Phase, of change: PendingChange, for key: KeyIndex, collapsed: Int = 0,
    attempt: Int = 1, reason: String? = nil, at now: Moment
  ) {
    let place = Int(key.rawValue)
    // A superseded change says nothing about the newest command of its key.
    if phase != .superseded {
      states[place].phase = phase
      states[place].changedAt = now
      changedKeys.append(key)
    }
    switch phase {
    case .accepted, .superseded, .sending:
      guard isWatched || change.origin != nil else { return }
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: break
    }
    events.append(
      CommandEvent(
        key: key, phase: phase, value: change.value, collapsed: collapsed, number: change.number,
        acceptedAt: change.acceptedAt, at: now, attempt: attempt, reason: reason,
        origin: change.origin,
        isFinal: phase.isFinal(canConfirm: property(key).confirm != nil)))
  }
}
