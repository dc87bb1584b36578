// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import Durability
package import LastOut
package import Values

/// Taking devices over from other gateways of a cluster, and leaving them to others.
extension GatewayCore {
  /// Takes over what another gateway accepted and has not sent: it settles again and is sent.
  package mutating func takeOver(_ entries: [JournalEntry], at now: Moment) {
    let registry = registry
    pipeline.durability?.takeOver(entries, in: registry, at: now)
  }

  /// Says whether another gateway drives a device: its changes and its topics are not this gateway's.
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

  /// The session, among the sources of a device's availability; those of its definition count from 0.
  private static var sessionSource: Int { -1 }

  /// Whether these keys can be left to another gateway: nothing of them is in flight, and everything
  /// accepted is stored.
  package func isStored(_ keys: some Sequence<KeyIndex>) -> Bool {
    guard let durability else { return false }
    return keys.allSatisfy { key in
      !commands.isInFlight(key) && durability.rows.isWritten(key) && !durability.queue.contains(key)
    }
  }

  /// Forgets these keys: another gateway drives their devices.
  ///
  /// What was accepted and stored is that gateway's. Nothing is emitted, and nothing of the store is
  /// removed.
  ///
  /// - Returns: The changes that were received and not answered: another gateway may or may not have
  ///   them. And who waits for phases of commands that were answered.
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

/// A change of a group's member whose device another gateway drives: the host passes it on, and reports
/// what becomes of it by ``GatewayCore/memberReported(_:_:reason:collapsed:isFinal:ofGroup:at:)``.
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
