// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import Durability
package import JSON
package import LastOut
import Routing
package import Values

/// Taking devices over from other gateways of a cluster, and leaving them to others.
extension GatewayCore {
  /// Takes over what another gateway accepted and has not sent: it settles again and is sent.
  package mutating func takeOver(_ entries: [JournalEntry], at now: Moment) {
    let registry = registry
    durability?.takeOver(entries, in: registry, at: now)
  }

  /// Says whether another gateway drives a device: its changes and its topics are not this
  /// gateway's, and what its availability sources said before it went counts no more.
  package mutating func setElsewhere(_ isElsewhere: Bool, device: Int) {
    elsewhere.set(isElsewhere, device)
    if isElsewhere {
      states.forgetShown(registry.indices(ofDevice: device).map { KeyIndex($0) }, ofDevice: device)
      commands.forgetAvailability(of: device)
    }
  }

  /// Says whether requests about a device that were passed on before have no answer: a change by a
  /// group or a scene is passed on behind them, although this gateway drives the device.
  package mutating func setBehind(_ isBehind: Bool, device: Int) {
    elsewhere.setBehind(isBehind, device)
  }

  /// Whether a change of a device by a group or a scene is executed here.
  package func executesParts(ofDevice device: Int) -> Bool { elsewhere.executesParts(of: device) }

  /// Gives lanes other limits: the share of this gateway, while others drive some of their devices.
  package mutating func setLaneLimits(_ limits: [String: LaneLimits], at now: Moment) {
    commands.setLaneLimits(limits, at: now)
  }

  /// A message said that the mesh of a lane, by name, has no room for commands.
  package mutating func laneIsBusy(_ name: String, at now: Moment) {
    commands.laneIsBusy(name, at: now)
  }

  /// Shows what the gateway that drives a key's device says of it.
  package mutating func show(_ status: KeyStatus, of key: KeyIndex) {
    guard elsewhere.contains(registry.device(of: key)) else { return }
    commands.show(status, of: key)
  }

  /// Receives an event of a group's member whose device another gateway drives.
  ///
  /// `number` is that of the group's command, from ``PassedChange``.
  package mutating func memberReported(
    _ member: KeyIndex,
    _ phase: Phase,
    reason: String?,
    collapsed: Int,
    isFinal: Bool,
    ofGroup number: UInt64,
    at now: Moment
  ) {
    let event = CommandEvent(
      ofGroup: member,
      phase,
      value: nil,
      collapsed: collapsed,
      number: number,
      acceptedAt: now,
      at: now,
      reason: reason,
      origin: nil,
      isFinal: isFinal
    )
    follow(event, ofGroup: number)
  }

  /// The session that carries a device's messages was made or ended: without it, nothing is sent.
  package mutating func sessionChanged(ofDevice device: Int, isUp: Bool, at now: Moment) {
    if !isUp { restorations.doubt(device) }
    commands.availabilityChanged(
      of: device,
      source: Self.sessionSource,
      isOnline: isUp,
      at: now
    )
  }

  /// The session of these devices was made: the broker sends what it retains of them, and
  /// ``retainedMessagesCompleted(of:at:)`` follows; see ``connectionChanged(isUp:at:)``.
  package mutating func retainedMessagesFollow(of devices: [Int], at now: Moment) {
    commands.retainedFollow(of: devices, at: now)
  }

  /// The session, among the sources of a device's availability; those of its definition count from
  /// 0.
  private static var sessionSource: Int { -1 }

  /// Whether these keys can be left to another gateway: nothing of them is in flight, and
  /// everything accepted is stored.
  package mutating func isStored(_ keys: some Sequence<KeyIndex>, at now: Moment) -> Bool {
    collectOutcomes(at: now)
    guard let durability else { return false }
    return keys.allSatisfy { key in
      !commands.isInFlight(key) && durability.rows.isWritten(key) && !durability.queue.contains(key)
    }
  }

  /// Forgets these keys: another gateway drives their devices.
  ///
  /// What was accepted and stored is that gateway's. Nothing of the store is removed, and nothing is
  /// emitted but what commands of groups make of it.
  ///
  /// - Returns: The changes that were received and not answered, as rejected: another gateway may or
  ///   may not have them. And who waits for phases of commands that were answered.
  package mutating func forget(
    _ keys: some Sequence<KeyIndex>,
    at now: Moment
  ) -> (unanswered: [CommandEvent], waiting: [ChangeOrigin]) {
    collectOutcomes(at: now)
    var unanswered: [CommandEvent] = []
    var waiting: [ChangeOrigin] = []
    for key in keys {
      let (events, origins) = forget(key, at: now)
      unanswered += events
      waiting += origins.filter { $0.groupCommand == nil }
      for event in events {
        if let part = event.origin?.groupCommand { follow(event, ofGroup: part.number) }
      }
      for part in origins.compactMap(\.groupCommand) {
        memberReported(
          key,
          .failed,
          reason: Self.movedReason,
          collapsed: 0,
          isFinal: true,
          ofGroup: part.number,
          at: now
        )
      }
    }
    return (unanswered, waiting)
  }

  /// Why what becomes of a command is not known here.
  private static var movedReason: String { "another gateway of the cluster drives the device now" }

  private mutating func forget(
    _ key: KeyIndex,
    at now: Moment
  ) -> (unanswered: [CommandEvent], waiting: [ChangeOrigin]) {
    restorations.forget(registry.device(of: key))
    let held = durability?.forget(key, in: &commands) ?? []
    var unanswered = held.filter { $0.phase == .accepted }
    var waiting = [commands.originInFlight(key)].compactMap { $0 }.filter(\.wantsPhases)
    commands.forget(key, at: now)
    for event in held + commands.log.events
    where event.isFinal && !unanswered.contains(where: { $0.number == event.number }) {
      if let origin = event.origin, origin.wantsPhases { waiting.append(origin) }
    }
    commands.log.events.removeAll()
    for place in unanswered.indices {
      unanswered[place].phase = .rejected
      unanswered[place].isFinal = true
      unanswered[place].reason = "\(Self.movedReason); the change is not stored"
    }
    return (unanswered, waiting)
  }
}

/// The devices that other gateways of a cluster drive; none without a cluster.
package struct DevicesElsewhere: Sendable {
  private var isElsewhere: [Bool] = []
  /// The devices that are driven here, and about which earlier requests have no answer.
  private var behind: Set<Int> = []

  package init() {}

  var isEmpty: Bool { behind.isEmpty && !isElsewhere.contains(true) }

  @inline(__always)
  func contains(_ device: Int) -> Bool { device < isElsewhere.count && isElsewhere[device] }

  func executesParts(of device: Int) -> Bool {
    !contains(device) && (behind.isEmpty || !behind.contains(device))
  }

  mutating func setBehind(_ isBehind: Bool, _ device: Int) {
    if isBehind { behind.insert(device) } else { behind.remove(device) }
  }

  mutating func set(_ isThere: Bool, _ device: Int) {
    if device >= isElsewhere.count {
      isElsewhere += Array(repeating: false, count: device + 1 - isElsewhere.count)
    }
    isElsewhere[device] = isThere
  }
}

/// A change of a group's member whose device another gateway drives: the host passes it on, and
/// reports what becomes of it by
/// ``GatewayCore/memberReported(_:_:reason:collapsed:isFinal:ofGroup:at:)``.
package struct PassedChange: Sendable {
  package var member: KeyIndex
  package var change: ValueChange
  package var options: ChangeOptions
  /// The number of the group's command.
  package var number: UInt64
}

/// What brokers and devices report.
extension GatewayCore {
  // MARK: - Brokers

  /// The connection to the gateway's own broker was made or ended.
  ///
  /// The broker then sends what it retains; ``retainedMessagesCompleted(of:at:)`` follows. Until
  /// then, for two seconds at most, nothing is sent to a device whose availability was not reported
  /// on this connection, except urgent values, and nothing that an earlier process left for a key
  /// whose state was not.
  package mutating func connectionChanged(isUp: Bool, at now: Moment) {
    guard isConnected != isUp else { return }
    isConnected = isUp
    if !isUp {
      restorations.doubtAll()
      setBridgeGroups([])
    }
    commands.connectionChanged(isUp: isUp, hasRetained: true, at: now)
    // The broker may have lost its retained messages.
    if isUp { states.forgetPublished() }
  }

  /// The broker has sent the messages that it retains, of these devices or, with `nil`, of all.
  package mutating func retainedMessagesCompleted(of devices: [Int]? = nil, at now: Moment) {
    commands.retainedCompleted(of: devices, at: now)
  }

  /// What became of ``Effect/publish(_:)``; a number that was answered before is ignored.
  package mutating func commandFinished(
    _ number: UInt64,
    _ outcome: PublishOutcome,
    at now: Moment
  ) {
    commands.finish(number, outcome, at: now)
  }

  // MARK: - Devices

  /// Puts what an earlier process recorded of reports, `age` ago, before what was recorded since.
  ///
  /// - Returns: What it recorded of keys that are not known; `nil` for nothing.
  package mutating func restoreHistory(
    _ document: ReportHistory.Document,
    age: Duration,
    at now: Moment
  ) -> ReportHistory.Document? {
    reports.restore(document, age: age, in: registry, at: now)
  }

  /// A device reported a value by one of the property's state sources.
  package mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    source: Int,
    at now: Moment
  ) {
    commands.advance(to: now)
    loops.reported(key, wire, source: source)
    switch commands.reported(key, wire, at: now) {
    case .value(let value):
      reports.record(value, of: key, at: now)
      guard !restorations.isIdle else { break }
      let property = registry.definition(of: key).property
      restorations.reported(key, of: registry.device(of: key), at: now) {
        property.isShown($0, by: wire)
      }
    case .unreadable(isFirst: true): logUnreadable(key, wire, source: source)
    case .nothing, .unreadable(isFirst: false): break
    }
  }

  /// A message came on one of the property's state topics in which there can be no value.
  package mutating func reportedUnreadable(
    _ key: KeyIndex,
    _ payload: JSONValue,
    source: Int,
    at now: Moment
  ) {
    commands.advance(to: now)
    if commands.reportedUnreadable(key, payload, at: now) == .unreadable(isFirst: true) {
      logUnreadable(key, payload, source: source)
    }
  }

  /// The convention's own acknowledgement of a value.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    commands.advance(to: now)
    commands.acknowledged(key, wire, at: now)
  }

  /// A device replied to a message; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    commands.advance(to: now)
    commands.replied(key, to: message, problem: problem, at: now)
  }

  /// One availability source of a device reported.
  ///
  /// `isShared` states that it is a source of other devices too.
  ///
  /// - Returns: Whether the device is online or offline now and was not before.
  package mutating func availability(
    ofDevice device: Int,
    source: Int,
    isOnline: Bool,
    isShared: Bool = false,
    at now: Moment
  ) -> Bool {
    commands.advance(to: now)
    let wasOnline = commands.sendQueue.isDeviceOnline(device)
    commands.availabilityChanged(
      of: device,
      source: source,
      isOnline: isOnline,
      at: now
    )
    followAvailability(
      ofDevice: device,
      source: source,
      isOnline: isOnline,
      wasOnline: wasOnline,
      isShared: isShared,
      at: now
    )
    return commands.sendQueue.isDeviceOnline(device) != wasOnline
  }

  /// A device that sleeps most of the time reported itself.
  package mutating func awoke(device: Int, at now: Moment) {
    commands.advance(to: now)
    commands.deviceAwoke(device, at: now)
  }

  private mutating func logUnreadable(_ key: KeyIndex, _ report: JSONValue, source: Int) {
    let entry = registry[key]
    let state = entry.states[source]
    outbox.log(
      LogEntry(
        .warning,
        "Report cannot be read",
        [
          "key": entry.key, "topic": state.topic, "value": state.value.text,
          "type": entry.definition.property.kind.name, "report": Excerpt.of(report),
        ]
      )
    )
  }
}
