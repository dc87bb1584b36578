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

    init?(_ change: PendingChange, of member: KeyIndex, in dispatcher: borrowing CommandDispatcher)
    {
      guard let part = change.origin?.group,
        !dispatcher.registry.definition(of: part.key).property.command.topic.isEmpty
      else { return nil }
      group = part.key
      number = part.number
      value = change.value
      lane = dispatcher.sendQueue.lane(of: member)
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
    in dispatcher: inout CommandDispatcher,
    at now: Moment
  ) -> GroupMessage? {
    guard let command = dispatcher.sendQueue[lead], !command.isRepeated,
      let change = undecided(command.change, of: lead, in: dispatcher),
      let place = dispatcher.registry.groups.members(of: change.group).firstIndex(of: lead)
    else { return nil }
    dispatcher.groupDecisions.decided(change.group, number: change.number)
    var message = GroupMessage()
    guard message.add(change, lead, in: &dispatcher, at: now), message.keys.count > 1 else {
      return nil
    }
    for other in dispatcher.relations[change.group].mergeGroup where other != change.group {
      message.merge(other, ofMember: place, in: &dispatcher, at: now)
    }
    return message
  }

  /// The keys whose commands would be sent with that of `lead`, if it had its turn now; `nil` if it
  /// would not be sent to its group.
  static func keys(
    ledBy lead: KeyIndex,
    in dispatcher: borrowing CommandDispatcher
  ) -> [KeyIndex]? {
    guard let command = dispatcher.sendQueue[lead], !command.isRepeated,
      let change = undecided(command.change, of: lead, in: dispatcher)
    else { return nil }
    var ready: [KeyIndex] = []
    for member in dispatcher.registry.groups.members(of: change.group) {
      switch standing(of: member, to: change, in: dispatcher) {
      case .ready: ready.append(member)
      case .unnecessary, .away, .shown: break
      case .settling, .apart: return nil
      }
    }
    return ready.count > 1 ? ready : nil
  }

  /// Whether the newest value of `key` is part of a change of its group that may be sent in one
  /// message: it is not sent earlier with others of its device.
  static func mayCarry(_ key: KeyIndex, in dispatcher: borrowing CommandDispatcher) -> Bool {
    guard dispatcher.facts[key].isMember, let newest = newest(of: key, in: dispatcher) else {
      return false
    }
    return undecided(newest, of: key, in: dispatcher) != nil
  }

  /// The change of a group that a member's change is part of, if nothing was decided about it.
  private static func undecided(
    _ change: PendingChange,
    of member: KeyIndex,
    in dispatcher: borrowing CommandDispatcher
  ) -> Change? {
    // During a reload definitions of members may differ.
    guard dispatcher.facts[member].isMember, dispatcher.reload == nil,
      let change = Change(change, of: member, in: dispatcher),
      dispatcher.groupDecisions.isFirst(of: change.group, number: change.number)
    else { return nil }
    return change
  }

  private static func newest(
    of key: KeyIndex,
    in dispatcher: borrowing CommandDispatcher
  ) -> PendingChange? {
    dispatcher.queue.pending(key)?.value ?? dispatcher.sendQueue[key]?.change
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
    in dispatcher: inout CommandDispatcher,
    at now: Moment
  ) -> Bool {
    var ready: [KeyIndex] = []
    var unnecessary: [KeyIndex] = []
    for member in dispatcher.registry.groups.members(of: change.group) {
      switch Self.standing(of: member, to: change, in: dispatcher) {
      case .ready: ready.append(member)
      case .unnecessary: unnecessary.append(member)
      case .away, .shown: break
      case .settling, .apart: return false
      }
    }
    guard !ready.isEmpty else { return false }
    for member in unnecessary {
      dispatcher.endWaitingCommand(of: member, as: .unchanged, reason: nil, at: now)
    }
    append(change.group, (lead.map { [$0] } ?? []) + ready.filter { $0 != lead })
    return true
  }

  /// Adds the commands of another property of the group, if all members wait to get one value of
  /// it; those that wait for quiet become ready.
  private mutating func merge(
    _ group: KeyIndex,
    ofMember place: Int,
    in dispatcher: inout CommandDispatcher,
    at now: Moment
  ) {
    let members = dispatcher.registry.groups.members(of: group)
    guard place < members.count, let newest = Self.newest(of: members[place], in: dispatcher),
      let change = Self.undecided(newest, of: members[place], in: dispatcher),
      change.group == group
    else { return }
    var settling: [KeyIndex] = []
    for member in members {
      switch Self.standing(of: member, to: change, in: dispatcher) {
      case .ready, .unnecessary, .away, .shown: break
      case .settling: settling.append(member)
      case .apart: return
      }
    }
    for member in settling { dispatcher.flush(member, at: now) }
    if add(change, in: &dispatcher, at: now) {
      dispatcher.groupDecisions.decided(group, number: change.number)
    }
  }

  private static func standing(
    of member: KeyIndex,
    to change: Change,
    in dispatcher: borrowing CommandDispatcher
  ) -> Standing {
    if let waiting = dispatcher.sendQueue[member],
      waiting.change.origin?.group?.number == change.number
    {
      guard waiting.value == change.value, !waiting.isRepeated,
        dispatcher.sendQueue.lane(of: member) == change.lane
      else { return .apart }
      guard dispatcher.sendQueue.isInLane(member) else {
        return dispatcher.sendQueue.waitsForDevice(member) ? .away : .apart
      }
      let isNeeded = waiting.isUrgent || !dispatcher.deviceHas(waiting.value, member)
      return isNeeded ? .ready : .unnecessary
    }
    if let pending = dispatcher.queue.pending(member)?.value {
      let isSame = pending.origin?.group?.number == change.number && pending.value == change.value
      return isSame ? .settling : .apart
    }
    guard !dispatcher.sendQueue.hasCommand(member) else { return .apart }
    return dispatcher.shows(change.value, member) ? .shown : .apart
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
    in dispatcher: borrowing CommandDispatcher,
    allows: (KeyIndex, Value) -> Bool
  ) {
    guard !dispatcher.registry.definition(of: group).property.command.topic.isEmpty else {
      return nil
    }
    self.init()
    for (key, value) in values {
      let carried = Self.carried(value, of: key, in: dispatcher, allows: allows)
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
    in dispatcher: borrowing CommandDispatcher,
    allows: (KeyIndex, Value) -> Bool
  ) -> [KeyIndex]? {
    var carried: [KeyIndex] = []
    for member in dispatcher.registry.groups.members(of: group) {
      guard allows(member, value), !dispatcher.sendQueue.isBlocked(member) else { return nil }
      let isAway =
        !dispatcher.sendQueue.isDeviceOnline(dispatcher.facts[member].device)
        || dispatcher.sendQueue.isAsleep(member)
      if !isAway, !dispatcher.isUnchanged(value, of: member) { carried.append(member) }
    }
    return carried
  }
}
