// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// Groups: their changes are those of their members, and one message may carry these.
extension Model {
  /// The command of a group that a member's value belongs to.
  struct GroupTag: Hashable {
    var place: Int
    var number: UInt64
  }

  /// The places of each group's members, by the place of the group's key.
  static func groups(in registry: Registry) -> [Int: [Int]] {
    var found: [Int: [Int]] = [:]
    for (place, entry) in registry.properties.enumerated() {
      guard let group = registry.devices[entry.device].group else { continue }
      found[place] = group.members.compactMap { member in
        registry.properties.firstIndex { $0.key == "\(member)/\(entry.property.id)" }
      }
    }
    return found
  }

  /// Shows what members have in common, and the phase of the last command.
  mutating func refreshGroups(_ phases: [Int: Phase]) {
    for (place, members) in groups {
      keys[place].common = Self.common(members.map { keys[$0].target })
      keys[place].actual = Self.common(members.map { keys[$0].actual })
      keys[place].phase = phases[place]
    }
  }

  private static func common(_ values: [Value?]) -> Value? {
    guard let first = values[0], values.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  // MARK: - Changes

  /// The effect of a group's change on its members; `refused` are those whose disk fails.
  mutating func changeGroup(
    _ change: ValueChange,
    of place: Int,
    _ options: Options,
    refused: [Int: ValidationError],
    at now: Moment
  ) -> (accepted: [Int], error: ValidationError?) {
    lastNumber += 1
    let members = groups[place] ?? []
    var options = options
    options.caller = 0
    options.group = GroupTag(place: place, number: lastNumber)
    var change = change
    if case .toggle = change {
      let values = members.map { base($0) }
      if values.contains(.boolean(true)) {
        change = .set(.boolean(false))
      } else if values.allSatisfy({ $0 == .boolean(false) }) {
        change = .set(.boolean(true))
      }
    }
    var accepted: [Int] = []
    var errors: [(place: Int, error: ValidationError)] = []
    for member in members {
      let key = KeyIndex(Int32(member))
      if let error = refused[member] {
        errors.append((member, error))
      } else if let error = self.change(change, of: key, options, at: now) {
        errors.append((member, error))
      } else {
        accepted.append(member)
      }
    }
    if accepted.isEmpty { return ([], errors.first?.error) }
    for (member, error) in errors {
      lastNumber += 1
      emitEnd(.rejected, lastNumber, member, reason: error.description)
    }
    return (accepted, nil)
  }

  // MARK: - One message

  /// Whether the commands of the group's change that `leader` is part of are still to be sent, and
  /// in one message if that is possible.
  func undecided(_ leader: Int) -> GroupTag? {
    guard let ready = keys[leader].ready, ready.attempt == 1 else { return nil }
    return undecided(ready.group)
  }

  private func undecided(_ tag: GroupTag?) -> GroupTag? {
    guard !isReloading, let tag, !keys[tag.place].property.command.topic.isEmpty,
      tag.number > decidedGroups[tag.place] ?? 0
    else { return nil }
    return tag
  }

  /// Whether the newest value of a key waits for the message of its group.
  func waitsForGroup(_ place: Int) -> Bool {
    undecided((keys[place].queued ?? keys[place].ready)?.group) != nil
  }

  /// Whether `leader`, whose turn it is, leaves alone rightly.
  mutating func leavesAlone(_ leader: Int) -> Bool {
    guard let tag = undecided(leader), let value = keys[leader].ready?.value else { return true }
    decidedGroups[tag.place] = tag.number
    guard let carried = carried(tag, value, in: keys[leader].lane) else { return true }
    // A member whose part ended in a turn of its own, and that waits to get a newer value, is left
    // out.
    let isLeftOut = groups[tag.place, default: []].contains {
      unnecessaryParts[$0] == tag && keys[$0].hasNewer
    }
    return carried.count < 2 || isLeftOut
  }

  /// The members whose commands a message for all of them carries; `nil` if one must not get it.
  private func carried(_ tag: GroupTag, _ value: Value, in lane: Int) -> [Int]? {
    var carried: [Int] = []
    for place in groups[tag.place] ?? [] {
      let key = keys[place]
      if let ready = key.ready, ready.group == tag {
        guard ready.value == value, ready.attempt == 1, key.lane == lane else { return nil }
        if isInLane(place) {
          carried.append(place)
        } else if key.isSending || devices[key.device].isOnline && !awaitsRetained(place)
          || key.isWithheld && !(ready.isUrgent && key.isUrgentDue)
        {
          return nil
        }
      } else if unnecessaryParts[place] != tag {
        guard !key.hasNewer, !key.isWithheld, shows(value, place) else { return nil }
      }
    }
    return carried
  }

  /// Whether every member waits for, or has, one value of another key of the group; those that are
  /// not quiet are flushed.
  private mutating func flushMembers(of tag: GroupTag, _ value: Value, at now: Moment) -> Bool {
    let members = groups[tag.place] ?? []
    let settling = members.filter {
      keys[$0].ready?.group != tag && keys[$0].queued?.group == tag
        && keys[$0].queued?.value == value
    }
    var trial = self
    for place in settling { trial.keys[place].queued = nil }
    for place in settling { trial.keys[place].ready = nil }
    let others = members.filter { !settling.contains($0) }
    trial.groups[tag.place] = others
    guard trial.carried(tag, value, in: keys[members[0]].lane) != nil else { return false }
    for place in settling { flush(place, at: now) }
    return true
  }

  /// Checks and records a message for a group; returns what is wrong with it, if anything.
  mutating func leavesForGroup(_ publish: CommandPublish, at now: Moment) -> String? {
    let leader = Int(publish.keys[0].rawValue)
    guard let tag = undecided(leader), let value = keys[leader].ready?.value else {
      return "goes to a group whose command was sent one by one"
    }
    if let wrong = turnIsWrong(of: leader, at: now) { return wrong }
    guard let first = carried(tag, value, in: keys[leader].lane) else {
      return "goes to all members of a group, and one must not get it"
    }
    decidedGroups[tag.place] = tag.number
    var leaving = [leader] + first.filter { $0 != leader }
    guard leaving.count > 1 else { return "goes to a group for one member" }
    var parts = [(place: tag.place, value: value)]
    let turn = (groups[tag.place] ?? []).firstIndex(of: leader) ?? 0
    for other in others(of: tag.place) {
      let members = groups[other] ?? []
      // That of the leader's device may have proved unnecessary in this very step.
      let sent = publish.keys.map { Int($0.rawValue) }.first { members.contains($0) }
      let own = (keys[members[turn]].queued ?? keys[members[turn]].ready)?.group
      let member = own?.place == other ? members[turn] : sent ?? members[turn]
      guard let newest = keys[member].queued ?? keys[member].ready, let tag = newest.group,
        tag.place == other, tag.number > decidedGroups[other] ?? 0,
        flushMembers(of: tag, newest.value, at: now),
        let carried = carried(tag, newest.value, in: keys[member].lane),
        carried.contains(where: { isNeeded($0) })
      else { continue }
      decidedGroups[other] = tag.number
      leaving += carried
      parts.append((other, newest.value))
    }
    guard leaving.map({ KeyIndex(Int32($0)) }) == publish.keys else {
      return "carries \(publish.keys.map(\.rawValue)), not \(leaving)"
    }
    let entries = leaving.compactMap { keys[$0].ready }
    if let wrong = wrongContent(of: publish, parts, entries, at: now) { return wrong }
    lanes.windows.sent(
      group: tag.place,
      leaving,
      lane: keys[leader].lane,
      isAction: keys[leader].isAction,
      at: now
    )
    for place in leaving where place != leader { lanes.interrupted(device: keys[place].device) }
    for (place, entry) in zip(leaving, entries) { leave(place, entry, grace: .zero, at: now) }
    return nil
  }

  /// Whether the device does not have what waits for it, as far as is known, or must get it anyway.
  private func isNeeded(_ place: Int) -> Bool {
    guard let ready = keys[place].ready else { return false }
    return ready.isUrgent || !isKnown(ready.value, place)
  }

  /// The other keys of a group that share messages with `place`.
  private func others(of place: Int) -> [Int] {
    let entry = registry.properties[place]
    guard registry.devices[entry.device].merge, entry.property.command.payload.isObject else {
      return []
    }
    return groups.keys.sorted().filter {
      $0 != place && registry.properties[$0].device == entry.device
    }
  }

  private func wrongContent(
    of publish: CommandPublish,
    _ parts: [(place: Int, value: Value)],
    _ entries: [KeyModel.Entry],
    at now: Moment
  ) -> String? {
    let property = keys[parts[0].place].property
    guard publish.topic == property.command.topic, publish.qos == 1 else {
      return "has the wrong topic or quality of service"
    }
    let members = parts.map { part in
      let property = keys[part.place].property
      return "\"\(property.id)\":\(JSONWriter.text(property.wireValue(of: part.value)))"
    }
    let wanted =
      property.command.payload.isObject
      ? "{\(members.joined(separator: ","))}" : parts[0].value.bareText
    let found = String(decoding: publish.payload, as: UTF8.self)
    guard found == wanted else { return "says \(found), not \(wanted)" }
    let rest = entries.map { now.duration(to: $0.expiresAt) }.min() ?? .zero
    guard publish.expiry == max(rest, .seconds(1)) else { return "expires at the wrong time" }
    return nil
  }
}
