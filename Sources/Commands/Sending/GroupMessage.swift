// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// One message on a group's own topic, in place of one for each member.
///
/// Members keep their own commands; the message is another way to send those of one change of the
/// group together. It is used where it can do no harm: the device of every member is about to get
/// this value anyway, or has it. A member that was given another value, or whose command must not
/// be sent, would get an older value after a newer one, so the commands are sent one by one then.
struct GroupMessage {
  /// How a member stands to a change of its group.
  private enum Standing {
    /// Its command may be sent.
    case ready
    /// Its command may be sent, and its device came to have the value meanwhile.
    case unnecessary
    /// Its value waits for quiet.
    case settling
    /// Its command waits for its device, which is offline or asleep, and is sent alone later.
    case away
    /// Nothing of it waits, and its device has the value.
    case shown
    /// It must not get the value now.
    case apart
  }

  /// A change of a group's key, as its members' commands have it.
  private struct Change {
    let group: KeyIndex
    let number: UInt64
    let value: Value
    let lane: Int

    init?(_ change: PendingChange, of member: KeyIndex, in machine: borrowing CommandStateMachine) {
      guard let part = change.origin?.group,
        part.name != nil || machine.bridgeGroups.contains(machine.registry.device(of: part.key)),
        !machine.registry.definition(of: part.key).property.command.topic.isEmpty
      else { return nil }
      group = part.key
      number = part.number
      value = change.value
      lane = machine.sendQueue.lane(of: member)
    }
  }

  /// The group's keys whose values it has, with the place in ``keys`` of a command of each.
  private(set) var parts: [(group: KeyIndex, place: Int)] = []
  /// The members' keys whose commands it carries, that of the one whose turn it is first.
  private(set) var keys: [KeyIndex] = []

  /// The key of the group that the message is known by.
  var name: KeyIndex { parts[0].group }

  /// The message that carries the command of `lead`, whose turn it is; `nil` if it is sent alone.
  static func led(
    by lead: KeyIndex,
    in machine: inout CommandStateMachine,
    at now: Moment
  ) -> GroupMessage? {
    guard let command = machine.sendQueue[lead], !command.isRepeated,
      let change = undecided(command.change, of: lead, in: machine),
      let place = machine.registry.groups.members(of: change.group).firstIndex(of: lead)
    else { return nil }
    machine.groupDecisions.decided(change.group, number: change.number)
    var message = GroupMessage()
    guard message.add(change, lead, in: &machine, at: now), message.keys.count > 1 else {
      return nil
    }
    let others = machine.relations[change.group].mergeGroup.filter { $0 != change.group }
    for riding in [false, true] {
      for other in others {
        message.merge(other, ofMember: place, riding: riding, in: &machine, at: now)
      }
    }
    return message.leavesRider(in: machine) ? nil : message
  }

  /// The keys whose commands would be sent with that of `lead`, if it had its turn now; `nil` if it
  /// would not be sent to its group.
  static func keys(
    ledBy lead: KeyIndex,
    in machine: borrowing CommandStateMachine
  ) -> [KeyIndex]? {
    guard let command = machine.sendQueue[lead], !command.isRepeated,
      let change = undecided(command.change, of: lead, in: machine)
    else { return nil }
    var ready: [KeyIndex] = []
    for member in machine.registry.groups.members(of: change.group) {
      switch standing(of: member, to: change, in: machine) {
      case .ready: ready.append(member)
      case .unnecessary, .away, .shown: break
      case .settling, .apart: return nil
      }
    }
    return ready.count > 1 ? ready : nil
  }

  /// Whether the newest value of `key` is part of a change of its group that may be sent in one
  /// message: it is not sent earlier with others of its device.
  static func mayCarry(_ key: KeyIndex, in machine: borrowing CommandStateMachine) -> Bool {
    guard machine.facts[key].isMember, let newest = newest(of: key, in: machine) else {
      return false
    }
    guard newest.rides else { return undecided(newest, of: key, in: machine) != nil }
    // What rides leaves as what it contradicts does.
    return machine.relations[key].implied.contains { lead in
      Self.newest(of: lead.key, in: machine).map {
        undecided($0, of: lead.key, in: machine) != nil
      } ?? false
    }
  }

  /// The change of a group that a member's change is part of, if nothing was decided about it.
  private static func undecided(
    _ change: PendingChange,
    of member: KeyIndex,
    in machine: borrowing CommandStateMachine
  ) -> Change? {
    // During a reload definitions of members may differ.
    guard machine.facts[member].isMember, machine.reload == nil,
      let change = Change(change, of: member, in: machine),
      machine.groupDecisions.isFirst(of: change.group, number: change.number)
    else { return nil }
    return change
  }

  private static func newest(
    of key: KeyIndex,
    in machine: borrowing CommandStateMachine
  ) -> PendingChange? {
    machine.queue.pending(key)?.value ?? machine.sendQueue[key]?.change
  }

  /// Adds the commands of `members`, which get one value of the group's key.
  mutating func append(_ group: KeyIndex, _ members: [KeyIndex]) {
    parts.append((group, keys.count))
    keys += members
  }

  /// Adds the commands of one change, that of `lead` first; `false` if they must be sent one by
  /// one.
  private mutating func add(
    _ change: Change,
    _ lead: KeyIndex? = nil,
    in machine: inout CommandStateMachine,
    at now: Moment
  ) -> Bool {
    var ready: [KeyIndex] = []
    var unnecessary: [KeyIndex] = []
    for member in machine.registry.groups.members(of: change.group) {
      switch Self.standing(of: member, to: change, in: machine) {
      case .ready: ready.append(member)
      case .unnecessary: unnecessary.append(member)
      case .away, .shown: break
      case .settling, .apart: return false
      }
    }
    guard !ready.isEmpty else { return false }
    for member in unnecessary {
      machine.endWaitingCommand(of: member, as: .unchanged, reason: nil, at: now)
    }
    append(change.group, (lead.map { [$0] } ?? []) + ready.filter { $0 != lead })
    return true
  }

  /// Adds the commands of another property of the group, if all members wait to get one value of
  /// it; those that wait for quiet become ready.
  ///
  /// `riding`: those that leave with others of the message, which they contradict, or not at all.
  private mutating func merge(
    _ group: KeyIndex,
    ofMember place: Int,
    riding: Bool,
    in machine: inout CommandStateMachine,
    at now: Moment
  ) {
    let members = machine.registry.groups.members(of: group)
    guard place < members.count, let newest = Self.newest(of: members[place], in: machine),
      newest.rides == riding, let change = Self.undecided(newest, of: members[place], in: machine),
      change.group == group
    else { return }
    var settling: [KeyIndex] = []
    for member in members {
      switch Self.standing(of: member, to: change, in: machine) {
      case .ready where riding:
        guard machine.relations[member].implied.contains(where: { keys.contains($0.key) }) else {
          return
        }
      case .ready, .unnecessary, .away, .shown: break
      case .settling where !riding: settling.append(member)
      case .settling, .apart: return
      }
    }
    for member in settling { machine.flush(member, at: now) }
    if add(change, in: &machine, at: now) {
      machine.groupDecisions.decided(group, number: change.number)
    }
  }

  /// Whether a command that leaves with one of these, or not at all, is not among them.
  private func leavesRider(in machine: borrowing CommandStateMachine) -> Bool {
    for key in keys where machine.facts[key].hasImplications && machine.hasRider(key) {
      let companions = machine.sendQueue.companions(of: key)
      for other in machine.relations[key].implying where machine.hasRiding(other.key) {
        if companions.contains(other.key), !keys.contains(other.key) { return true }
      }
    }
    return false
  }

  private static func standing(
    of member: KeyIndex,
    to change: Change,
    in machine: borrowing CommandStateMachine
  ) -> Standing {
    if let waiting = machine.sendQueue[member],
      waiting.change.origin?.group?.number == change.number
    {
      guard waiting.value == change.value, !waiting.isRepeated,
        machine.sendQueue.lane(of: member) == change.lane
      else { return .apart }
      if waiting.change.rides { return standing(ofRider: member, in: machine) }
      guard machine.sendQueue.isInLane(member) else {
        return machine.sendQueue.waitsForDevice(member) ? .away : .apart
      }
      let isNeeded = waiting.isUrgent || !machine.deviceHas(waiting.value, member)
      return isNeeded ? .ready : .unnecessary
    }
    if let pending = machine.queue.pending(member)?.value {
      let isSame = pending.origin?.group?.number == change.number && pending.value == change.value
      return isSame ? .settling : .apart
    }
    // A crash would send a value older than the group's to a member that is withheld.
    guard !machine.sendQueue.hasCommand(member), !machine.sendQueue.isWithheld(member) else {
      return .apart
    }
    return machine.shows(change.value, member) ? .shown : .apart
  }

  /// How a command stands that is in no lane, because it is sent with one that it contradicts.
  private static func standing(
    ofRider member: KeyIndex,
    in machine: borrowing CommandStateMachine
  ) -> Standing {
    if machine.sendQueue.isBlocked(member) || machine.sendQueue.awaitsRetained(member) {
      return .apart
    }
    return machine.sendQueue.isReachable(member) ? .ready : .away
  }
}

/// What would be sent in one message, without sending it.
extension GroupMessage {
  /// The message that values of a group's keys would be sent in if they were accepted and settled
  /// now; `nil` if `group` would be sent one by one.
  ///
  /// `allows` says whether a member accepts a value.
  init?(
    previewing group: KeyIndex,
    of values: [(key: KeyIndex, value: Value)],
    in machine: borrowing CommandStateMachine,
    allows: (KeyIndex, Value) -> Bool
  ) {
    guard !machine.registry.definition(of: group).property.command.topic.isEmpty else {
      return nil
    }
    self.init()
    for (key, value) in values {
      let carried = Self.carried(value, of: key, in: machine, allows: allows)
      if let carried, !carried.isEmpty {
        append(key, carried)
      } else if key == group {
        return nil
      }
    }
    guard keys.count > 1 else { return nil }
  }

  /// The members that would need the value; `nil` if one of them must not get it in this message.
  private static func carried(
    _ value: Value,
    of group: KeyIndex,
    in machine: borrowing CommandStateMachine,
    allows: (KeyIndex, Value) -> Bool
  ) -> [KeyIndex]? {
    var carried: [KeyIndex] = []
    for member in machine.registry.groups.members(of: group) {
      guard allows(member, value), !machine.sendQueue.isBlocked(member) else { return nil }
      let isAway =
        !machine.sendQueue.isDeviceOnline(machine.facts[member].device)
        || machine.sendQueue.isAsleep(member)
      if !isAway, !machine.isUnchanged(value, of: member) { carried.append(member) }
    }
    return carried
  }
}

/// Which changes of groups have been decided on: each is sent in one message, or one by one.
///
/// The first of a change's commands whose turn it is decides for all of them, so the others, which
/// are many in a large group, are not looked at again.
struct GroupDecisions {
  /// The newest change of each group's key that was decided on; changes are sent in order.
  private var newest: [KeyIndex: UInt64] = [:]

  /// Whether nothing was decided about a change, or a newer one of the same group's key.
  func isFirst(of group: KeyIndex, number: UInt64) -> Bool { number > newest[group] ?? 0 }

  mutating func decided(_ group: KeyIndex, number: UInt64) { newest[group] = number }
}
