// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// The value of a key that waits to be sent; of an action, the one that is sent next.
package struct PendingStatus: Sendable {
  package var key: KeyIndex
  package var value: Value
  /// How many earlier changes it stands for.
  package var collapsed: Int
  /// How many commands wait; more than one only of an action.
  package var count = 1
  package var waits: PendingReason
  /// When it is sent, as far as that is known; when it expires, if it waits for a broker or a
  /// device.
  package var due: Moment?
}

extension PendingStatus {
  /// What waits for those of `keys` that have something waiting.
  ///
  /// A value in a lane is ``due`` when its token comes, if no urgent value goes ahead of it and none
  /// in its lane is cancelled. Takes time in proportion to the keys and to everything that waits in
  /// lanes.
  package static func all(
    of keys: [KeyIndex],
    in machine: borrowing CommandStateMachine,
    at now: Moment
  ) -> [PendingStatus] {
    let times = sendTimes(in: machine, after: now)
    var all: [PendingStatus] = []
    for key in keys {
      guard var status = PendingStatus(of: key, in: machine) else { continue }
      if status.waits == .lane { status.due = times[key] }
      all.append(status)
    }
    return all
  }

  /// When the values that wait in lanes are sent if nothing changes; see ``all(of:in:at:)``.
  ///
  /// Empty without a connection. Takes time in proportion to everything that waits in lanes.
  package static func sendTimes(
    in machine: borrowing CommandStateMachine,
    after now: Moment
  ) -> [KeyIndex: Moment] {
    let queue = machine.sendQueue
    guard queue.isConnected, queue.lanes.count > 0 else { return [:] }
    var isAlone: Set<UInt64> = []
    return queue.lanes.sendTimes(
      after: now,
      ignoresLimits: machine.isClosing,
      flow: { queue[$0]?.change.flow ?? 0 },
      device: { queue.facts[$0].device },
      companions: { key in
        if let number = queue[key]?.change.origin?.group?.number, !isAlone.contains(number) {
          if let keys = GroupMessage.keys(ledBy: key, in: machine) { return keys }
          isAlone.insert(number)
        }
        return queue.companions(of: key).filter { queue[$0] != nil }
      }
    )
  }

  /// What waits for `key`, the newest value; `nil` when nothing does.
  ///
  /// Takes constant time, and so does not say when a lane sends it.
  package init?(of key: KeyIndex, in machine: borrowing CommandStateMachine) {
    let command = machine.sendQueue[key]
    if let pending = machine.queue.pending(key) {
      self.init(pending, of: key, behind: command)
    } else if let command {
      self.init(
        command,
        of: key,
        count: machine.sendQueue.commandCount(key),
        waits: machine.sendQueue.waits(key)
      )
    } else {
      return nil
    }
  }

  /// A value that waits for quiet, maybe behind a command that it will replace.
  init(_ pending: LastOutCore<PendingChange>.Pending, of key: KeyIndex, behind command: Command?) {
    self.key = key
    value = pending.value.value
    collapsed = pending.collapsed + (command.map { $0.collapsed + 1 } ?? 0)
    waits = .quiet
    due = pending.due
  }

  /// A command that waits to be sent.
  init(_ command: Command, of key: KeyIndex, count: Int, waits: PendingReason) {
    self.key = key
    value = command.value
    collapsed = command.collapsed
    self.count = count
    self.waits = waits
    due =
      switch waits {
      case .offline, .unknown, .asleep: command.change.expiresAt
      case .quiet, .lane, .inFlight: nil
      }
  }
}

/// What commands wait for.
extension SendQueue {
  /// What the command of `key` waits for.
  func waits(_ key: KeyIndex) -> PendingReason {
    if !isOnline(key) { return .offline }
    if awaitsRetained(key) { return .unknown }
    if isAsleep(key) { return .asleep }
    if awaitsAcknowledgement(key) { return .inFlight }
    return blockedRider(of: key).map(awaitsAcknowledgement) ?? false ? .inFlight : .lane
  }

  /// The lanes that have a limit, by name, with all actions that wait.
  package var laneStatuses: [LaneStatus] {
    var statuses = lanes.statuses
    for (key, count) in actions.counts {
      guard let name = lanes.name(ofDevice: facts[key].device),
        let place = statuses.firstIndex(where: { $0.name == name })
      else { continue }
      statuses[place].waiting += count
    }
    return statuses
  }
}
