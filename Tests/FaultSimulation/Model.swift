// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

/// A slow and obvious model: the events and replies of the machine, derived from the contract
/// alone.
///
/// It has no lists, heaps or tables: every query looks at every key. Where it cannot predict, it
/// accepts the choice of the machine and checks it: which of several devices is next in a lane, and
/// which of several deadlines of one instant is first.
struct Model {
  /// The options of a change.
  struct Options {
    var caller: UInt64
    var ttl: Duration?
    var transition: Double?
    var skipsQuiet: Bool
    /// Whether it comes by a message, and how long it then waits as part of a feedback loop.
    var isMessage = false
    var wait: Duration?
    /// The group's command that the change is a part of.
    var group: GroupTag?
  }

  struct DeviceModel {
    var sources: [Bool]
    /// The sources that have reported since the connection was made.
    var heard: Set<Int> = []
    var mayRetry = true

    var isOnline: Bool { !sources.contains(false) }
  }

  /// The reply of `pending` for one key.
  struct PendingAnswer: Hashable {
    var value: Value
    var collapsed: Int
    var count = 1
    var waits: PendingReason
    var due: Moment?
  }

  let registry: Registry
  let pendingLimit: Int
  let patience: Duration
  var keys: [KeyModel]
  var devices: [DeviceModel]
  var lanes: LaneMeter
  var requests: RequestModel
  var isConnected = false
  /// When the broker counts as having sent what it retains; `nil` once it has.
  var retainedBy: Moment?
  /// The keys that were reported since the connection was made.
  var heardKeys: Set<Int> = []
  /// The keys whose devices were offline since they were reported.
  var outdatedKeys: Set<Int> = []
  var isClosing = false
  /// How often a device came to rest elsewhere than where it was asked to.
  var restsElsewhere = 0
  let isWatched: Bool
  /// Whether there is a journal.
  let isJournalled: Bool
  /// Whether a reload is in progress.
  var isReloading = false
  /// Whether any device has reported anything.
  var hasReports = false
  /// The members' places by the place of their group's key.
  var groups: [Int: [Int]]
  /// The newest command of each group that was sent, in one message or one by one.
  var decidedGroups: [Int: UInt64] = [:]
  /// The parts of changes of groups that proved unnecessary just before a message left: their
  /// devices have the value, even if something newer of theirs waits for quiet.
  var unnecessaryParts: [Int: GroupTag] = [:]
  var lastNumber: UInt64 = 0
  /// The events that are expected since the last comparison.
  var expected: [ExpectedEvent] = []

  init(
    _ registry: Registry,
    _ settings: CommandSettings,
    isWatched: Bool,
    isJournalled: Bool
  ) {
    self.registry = registry
    self.isWatched = isWatched
    self.isJournalled = isJournalled
    pendingLimit = settings.pendingLimit
    patience = settings.stepPatience
    lanes = LaneMeter(registry, settings.lanes)
    requests = RequestModel(keys: registry.properties.count)
    groups = Self.groups(in: registry)
    devices = registry.devices.map {
      DeviceModel(sources: Array(repeating: true, count: $0.availability.count))
    }
    var keys: [KeyModel] = []
    for (place, entry) in registry.properties.enumerated() {
      keys.append(Self.key(place, entry, registry, lane: lanes.laneOfDevice[entry.device]))
    }
    for place in groups.keys { keys[place].isGroup = true }
    self.keys = keys
  }

  private static func key(
    _ place: Int,
    _ entry: Registry.Entry,
    _ registry: Registry,
    lane: Int
  ) -> KeyModel {
    let property = entry.property
    var isAction = false
    if case .action = property.kind { isAction = true }
    var ends: [KeyIndex] = []
    var excluded: [KeyIndex] = []
    for (number, other) in registry.properties.enumerated()
    where other.device == entry.device && number != place {
      if property.ends.contains(other.property.id) { ends.append(KeyIndex(Int32(number))) }
      if property.excludes.contains(other.property.id)
        || other.property.excludes.contains(property.id)
      {
        excluded.append(KeyIndex(Int32(number)))
      }
    }
    return KeyModel(
      property: property,
      device: entry.device,
      lane: lane,
      isAction: isAction,
      canConfirm: property.confirm != nil && property.state != nil && !isAction,
      ends: ends,
      excluded: excluded,
      travels: Self.travels(property)
    )
  }

  private static func travels(_ property: Property) -> Bool {
    guard case .number = property.kind else { return false }
    return property.state != nil
  }

  // MARK: - Queries

  var places: Range<Int> { keys.indices }

  func isOnline(_ place: Int) -> Bool { isConnected && devices[keys[place].device].isOnline }

  /// Whether the broker has not sent yet what it retains of the device's availability.
  private func lacksAvailability(_ place: Int) -> Bool {
    let device = devices[keys[place].device]
    return retainedBy != nil && device.heard.count < device.sources.count
  }

  /// Whether it has not sent yet what it retains of the key's state.
  private func lacksState(_ place: Int) -> Bool {
    retainedBy != nil && keys[place].property.state != nil && !heardKeys.contains(place)
  }

  /// Whether anything of what it retains is missing.
  func lacksRetained(_ place: Int) -> Bool { lacksAvailability(place) || lacksState(place) }

  /// Whether a value waits for what the broker retains of its device.
  func awaitsRetained(_ place: Int) -> Bool {
    guard let ready = keys[place].ready else { return lacksAvailability(place) }
    return ready.isReplayed ? lacksRetained(place) : lacksAvailability(place) && !ready.isUrgent
  }

  var offlineReason: String {
    isConnected ? "the device is offline" : "the broker is not connected"
  }

  var queuedCount: Int { keys.count { $0.queued != nil } }
  var readyCount: Int { keys.count { $0.ready != nil } }
  var sendingCount: Int { keys.count { $0.isSending } }

  /// Whether key and device allow a value to be sent; only its lane can delay it.
  func isInLane(_ place: Int) -> Bool {
    guard let ready = keys[place].ready, devices[keys[place].device].isOnline,
      !keys[place].isSending, !awaitsRetained(place), !mustWait(place)
    else { return false }
    guard keys[place].isWithheld else { return true }
    // A value that was sent once may be repeated: the disk no longer delays it.
    return ready.isUrgent && (keys[place].isUrgentDue || ready.attempt > 1)
  }

  /// Whether something older that is related has not left for good: an urgent value that would have
  /// ended this one, or a press of the same device.
  func mustWait(_ place: Int) -> Bool {
    places.contains { other in
      if keys[other].ends.contains(KeyIndex(Int32(place))), keys[other].ready?.isUrgent == true {
        return true
      }
      if keys[place].isAction, keys[other].isAction, other != place,
        keys[other].device == keys[place].device
      {
        guard let older = keys[other].ready, let own = keys[place].ready else { return false }
        return older.number < own.number
      }
      guard let flight = keys[other].flight, !keys[other].isAction else { return false }
      return keys[other].ends.contains(KeyIndex(Int32(place))) && flight.isSending
        && flight.entry.isUrgent
    }
  }

  /// Whether the window of its lane lets a key's value leave.
  func fitsWindow(_ place: Int) -> Bool {
    keys[place].ready?.isUrgent == true || lanes.windows.hasRoom(in: keys[place].lane)
  }

  var isDrained: Bool {
    sendingCount == 0 && queuedCount == 0 && !places.contains { isInLane($0) }
      && (retainedBy == nil || readyCount == 0)
  }

  /// Whether the device is known to have `value` already.
  func isKnown(_ value: Value, _ place: Int) -> Bool {
    let key = keys[place]
    let isOutdated = outdatedKeys.contains(place) || mustWait(place)
    let isStale = lacksState(place) || key.property.state != nil && isOutdated
    return isOnline(place) && !isStale && !key.isAction && !key.property.always
      && shows(value, place)
  }

  /// Whether the device has `value` at rest, or reports that it moves there.
  func shows(_ value: Value, _ place: Int) -> Bool {
    let key = keys[place]
    guard key.flight == nil else { return false }
    let isOnItsWay = key.isGoalNewest && key.progressAt != nil
    guard let shown = !key.isUncertain ? key.actual : isOnItsWay ? key.goal : nil else {
      return false
    }
    return key.property.isSameOnWire(shown, value)
  }

  /// The expected reply of `pending`.
  func pending(_ place: Int) -> PendingAnswer? {
    let key = keys[place]
    if let queued = key.queued {
      return PendingAnswer(
        value: queued.value,
        collapsed: queued.collapsed + (key.ready.map { $0.collapsed + 1 } ?? 0),
        waits: .quiet,
        due: key.due
      )
    }
    guard let ready = key.ready else { return nil }
    let isOffline = !isOnline(place)
    let isUnknown = !isOffline && awaitsRetained(place)
    return PendingAnswer(
      value: ready.value,
      collapsed: ready.collapsed,
      count: 1 + key.behind.count,
      waits: isOffline ? .offline : isUnknown ? .unknown : key.isSending ? .inFlight : .lane,
      due: isOffline || isUnknown ? ready.expiresAt : nil
    )
  }

  func isUnsent(_ place: Int) -> Bool {
    let key = keys[place]
    if key.queued != nil || key.ready != nil || !key.held.isEmpty { return true }
    return key.isSending && key.flight?.isEnded == false
  }

  /// The next deadline, if any.
  func nextDeadline(after now: Moment) -> Moment? {
    var earliest: Moment?
    func consider(_ moment: Moment) { earliest = min(earliest ?? moment, moment) }
    for place in places {
      if keys[place].queued != nil { consider(keys[place].due) }
      for deadline in deadlines(of: place) { consider(deadline.at) }
      if isConnected, !isClosing, isInLane(place), fitsWindow(place) {
        let token = lanes.nextToken(of: keys[place].lane, after: now)
        if token > now { consider(token) }
      }
    }
    for moment in requestDeadlines(after: now) { consider(moment) }
    if let retainedBy { consider(retainedBy) }
    for moment in lanes.windows.deadlines(withRequests: isConnected && !isClosing) {
      consider(moment)
    }
    return earliest
  }

  // MARK: - Expected events

  mutating func emit(
    _ phase: Phase,
    _ entry: KeyModel.Entry,
    _ place: Int,
    reason: String? = nil,
    collapsed: Int? = nil
  ) {
    if entry.number >= keys[place].newest {
      keys[place].newest = entry.number
      keys[place].phase = phase
    }
    switch phase {
    case .accepted, .superseded, .sending, .sent: break
    case .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired:
      lanes.interrupted(device: keys[place].device)
    }
    switch phase {
    case .accepted, .superseded, .sending:
      guard isWatched || isJournalled || entry.caller != 0 || entry.group != nil else { return }
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: break
    }
    expected.append(
      ExpectedEvent(
        key: KeyIndex(Int32(place)),
        phase: phase,
        value: entry.value,
        number: entry.number,
        collapsed: phase == .accepted ? 0 : collapsed ?? entry.collapsed,
        attempt: entry.attempt,
        reason: reason,
        caller: entry.caller,
        isFinal: phase == .sent
          ? !keys[place].canConfirm : ![.accepted, .sending].contains(phase)
      )
    )
  }

  mutating func emit(_ phase: Phase, held: KeyModel.Held, _ place: Int, reason: String?) {
    emitEnd(phase, held.number, place, reason: reason, caller: held.options.caller)
  }

  /// The only event of a change that was not accepted.
  mutating func emitEnd(
    _ phase: Phase,
    _ number: UInt64,
    _ place: Int,
    reason: String?,
    caller: UInt64 = 0
  ) {
    expected.append(
      ExpectedEvent(
        key: KeyIndex(Int32(place)),
        phase: phase,
        value: nil,
        number: number,
        collapsed: 0,
        attempt: 1,
        reason: reason,
        caller: caller,
        isFinal: true
      )
    )
  }
}
