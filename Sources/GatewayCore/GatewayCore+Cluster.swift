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
    pipeline.durability?.takeOver(entries, in: registry, at: now)
  }

  /// Says whether another gateway drives a device: its changes and its topics are not this
  /// gateway's.
  package mutating func setElsewhere(_ isElsewhere: Bool, device: Int) {
    elsewhere.set(isElsewhere, device)
    if isElsewhere {
      states.forgetShown(registry.indices(ofDevice: device).map { KeyIndex($0) }, ofDevice: device)
    }
  }

  /// Gives lanes other limits: the share of this gateway, while others drive some of their devices.
  package mutating func setLaneLimits(_ limits: [String: LaneLimits], at now: Moment) {
    pipeline.commands.setLaneLimits(limits, at: now)
  }

  /// Shows what the gateway that drives a key's device says of it.
  package mutating func show(_ status: KeyStatus, of key: KeyIndex) {
    guard elsewhere.contains(registry.device(of: key)) else { return }
    pipeline.commands.show(status, of: key)
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
    groups.follow(event, of: number, in: &pipeline, &outbox)
  }

  /// The session that carries a device's messages was made or ended: without it, nothing is sent.
  package mutating func sessionChanged(ofDevice device: Int, isUp: Bool, at now: Moment) {
    pipeline.commands.dispatcher.availabilityChanged(
      of: device,
      source: Self.sessionSource,
      isOnline: isUp,
      at: now
    )
  }

  /// The session of these devices was made: the broker sends what it retains of them, and
  /// ``retainedMessagesCompleted(of:at:)`` follows; see ``connectionChanged(isUp:at:)``.
  package mutating func retainedMessagesFollow(of devices: [Int], at now: Moment) {
    pipeline.commands.dispatcher.retainedFollow(of: devices, at: now)
  }

  /// The session, among the sources of a device's availability; those of its definition count from
  /// 0.
  private static var sessionSource: Int { -1 }

  /// Whether these keys can be left to another gateway: nothing of them is in flight, and
  /// everything accepted is stored.
  package func isStored(_ keys: some Sequence<KeyIndex>) -> Bool {
    guard let durability else { return false }
    return keys.allSatisfy { key in
      !commands.isInFlight(key) && durability.rows.isWritten(key) && !durability.queue.contains(key)
    }
  }

  /// Forgets these keys: another gateway drives their devices.
  ///
  /// What was accepted and stored is that gateway's. Nothing is emitted, and nothing of the store
  /// is removed.
  ///
  /// - Returns: The changes that were received and not answered: another gateway may or may not
  ///   have them. And who waits for phases of commands that were answered.
  package mutating func forget(
    _ keys: some Sequence<KeyIndex>,
    at now: Moment
  ) -> (unanswered: [CommandEvent], waiting: [ChangeOrigin]) {
    collectOutcomes(at: now)
    var unanswered: [CommandEvent] = []
    var waiting: [ChangeOrigin] = []
    for key in keys { pipeline.forget(key, &unanswered, &waiting, at: now) }
    return (unanswered, waiting)
  }
}

/// The devices that other gateways of a cluster drive; none without a cluster.
package struct DevicesElsewhere: Sendable {
  private var isElsewhere: [Bool] = []

  package init() {}

  @inline(__always)
  func contains(_ device: Int) -> Bool { device < isElsewhere.count && isElsewhere[device] }

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
  /// Of the group's command.
  package var number: UInt64
}

extension CommandPipeline {
  /// Forgets a key; see ``GatewayCore/forget(_:at:)``.
  fileprivate mutating func forget(
    _ key: KeyIndex,
    _ unanswered: inout [CommandEvent],
    _ waiting: inout [ChangeOrigin],
    at now: Moment
  ) {
    let open = (durability?.forget(key, in: &commands) ?? []).filter { $0.phase == .accepted }
    unanswered += open
    waiting += [commands.originInFlight(key)].compactMap { $0 }.filter(\.wantsPhases)
    commands.forget(key, at: now)
    for event in commands.dispatcher.log.events
    where event.isFinal && !open.contains(where: { $0.number == event.number }) {
      if let origin = event.origin, origin.wantsPhases { waiting.append(origin) }
    }
    commands.dispatcher.log.events.removeAll()
  }
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
    pipeline.commands.dispatcher.connectionChanged(isUp: isUp, hasRetained: true, at: now)
    // The broker may have lost its retained messages.
    if isUp { states.forgetPublished() }
  }

  /// The broker has sent the messages that it retains, of these devices or, with `nil`, of all.
  package mutating func retainedMessagesCompleted(of devices: [Int]? = nil, at now: Moment) {
    pipeline.commands.dispatcher.retainedCompleted(of: devices, at: now)
  }

  /// What became of ``Effect/publish(_:)``; a number that was answered before is ignored.
  package mutating func commandFinished(
    _ number: UInt64,
    _ outcome: CommandPublish.Outcome,
    at now: Moment
  ) {
    pipeline.commands.dispatcher.finish(number, outcome, at: now)
  }

  /// Accepts a message for routes.
  ///
  /// `document` is the payload as JSON, where ``RouteMachine/needsDocument(_:)`` says so; `keys` is
  /// what ``RouteMachine/outputs(fedBy:broker:)`` returned; `trail` names the gateways that the
  /// message has passed, and `mark` this one.
  package mutating func route(
    _ payload: Span<UInt8>,
    document: JSONValue?,
    for keys: [KeyIndex]?,
    topic: Span<UInt8>,
    retained: Bool,
    trail: String,
    mark: String,
    at now: Moment
  ) {
    routes.advance(to: now)
    let rejection = routes.admit(
      payload,
      document: document,
      for: keys,
      retained: retained,
      trail: trail,
      mark: mark,
      isShuttingDown: isShuttingDown,
      at: now
    )
    switch rejection {
    case nil: break
    case .retained: rejectRetained(topic: Text.of(topic))
    case .returned(let to, let reason):
      outbox.log(rejections.recordReturned(topic: Text.of(topic), to: to, reason: reason))
    case .unread: outbox.log(rejections.recordUnread(topic: Text.of(topic), size: payload.count))
    case .other(let kind, let reason):
      reject(kind, topic: Text.of(topic), reason: reason, at: now)
    }
  }

  /// Counts a message that is rejected, and logs it, at most once in ten seconds for each kind and
  /// topic.
  package mutating func reject(
    _ kind: RejectionLog.Kind,
    topic: String,
    reason: @autoclosure () -> String,
    at now: Moment
  ) {
    outbox.log(rejections.record(kind, topic: topic, reason: reason(), at: now))
  }

  /// Counts a retained message on a command or route topic, which is ignored.
  package mutating func rejectRetained(topic: String) {
    outbox.log(rejections.recordRetained(topic: topic))
  }

  // MARK: - Devices

  /// A device reported a value by one of the property's state sources.
  package mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    source: Int,
    at now: Moment
  ) {
    pipeline.commands.advance(to: now)
    loops.reported(key, wire, source: source)
    switch pipeline.commands.reported(key, wire, at: now) {
    case .value(let value): reports.record(value, of: key, at: now)
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
    pipeline.commands.advance(to: now)
    if pipeline.commands.reportedUnreadable(key, payload, at: now) == .unreadable(isFirst: true) {
      logUnreadable(key, payload, source: source)
    }
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
