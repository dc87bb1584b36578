// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// Sending, and the broker's replies.
extension Model {
  // MARK: - To the endpoint

  /// Moves the settled value out of the queue.
  mutating func settle(_ place: Int, at now: Moment) {
    guard var run = keys[place].queued else { return }
    keys[place].queued = nil
    keys[place].base = now
    keys[place].isLeadingHeld = false
    keys[place].intervalEnd = now.advanced(by: keys[place].property.policy.minInterval)
    let isKnown = isKnown(run.value, place)
    if let older = keys[place].ready {
      emit(.superseded, older, place, reason: "newer value")
      run.collapsed += older.collapsed + 1
      if older.isUrgent, let heir = keys[place].heir { keys[place].overridden = (older, heir) }
    }
    if isKnown {
      if keys[place].ready != nil { lanes.interrupted(device: keys[place].device) }
      keys[place].ready = nil
      keys[place].overridden = nil
      emit(.unchanged, run, place)
    } else {
      makeReady(run, place)
    }
  }

  mutating func makeReady(_ entry: KeyModel.Entry, _ place: Int) {
    if keys[place].isAction, keys[place].ready != nil {
      keys[place].behind.append(entry)
    } else {
      keys[place].ready = entry
      keys[place].heir = nil
      if entry.isUrgent { keys[place].overridden = nil }
    }
    failIfActionIsOffline(place)
  }

  /// A momentary command never waits.
  mutating func failIfActionIsOffline(_ place: Int) {
    guard keys[place].isAction, !isOnline(place) else { return }
    while let ready = keys[place].takeReady() {
      emit(.failed, ready, place, reason: offlineReason)
    }
  }

  // MARK: - To the broker

  /// Records that `place` was unchanged while it waited; returns why that is wrong, if it is.
  mutating func foundUnchanged(_ place: Int, at now: Moment) -> String? {
    guard let ready = keys[place].ready, isInLane(place), isConnected else {
      return "was found unchanged, but could not leave"
    }
    guard ready.attempt == 1, !ready.isUrgent, isKnown(ready.value, place) else {
      return "is said to be unchanged, but has to leave"
    }
    keys[place].ready = nil
    keys[place].overridden = nil
    unnecessaryParts[place] = ready.group
    lanes.interrupted(device: keys[place].device)
    emit(.unchanged, ready, place)
    return nil
  }

  /// Checks and records a sent message; returns what is wrong with it, if anything.
  mutating func leaves(
    _ publish: CommandPublish,
    emitted: [CommandEvent],
    at now: Moment
  ) -> String? {
    guard isConnected else { return "left without a broker" }
    guard publish.keys.contains(where: { isInLane(Int($0.rawValue)) }) else {
      return "left though none of its keys may"
    }
    if isForGroup(publish) { return leavesForGroup(publish, at: now) }
    let leaders = leaders(of: publish)
    guard leaders.count > 1 else { return leaves(publish, leader: leaders[0], at: now) }
    // The events show whose turn it was: the key whose newer value stays.
    let sent = emitted.filter { $0.phase == .sending }.map(\.number)
    var wrong: String?
    for leader in leaders {
      var trial = self
      wrong = trial.leaves(publish, leader: leader, at: now)
      guard wrong == nil else { continue }
      wrong = "carries \(sent), which no order of the lane explains"
      guard trial.expected.filter({ $0.phase == .sending }).map(\.number) == sent else { continue }
      self = trial
      return nil
    }
    return wrong
  }

  private mutating func leaves(
    _ publish: CommandPublish,
    leader: Int,
    at now: Moment
  ) -> String? {
    if let wrong = turnIsWrong(of: leader, at: now) { return wrong }
    guard leavesAlone(leader) else { return "left alone, and one message reaches all of its group" }
    let lane = keys[leader].lane
    let leaving = gather(publish, leader: leader, at: now)
    guard leaving.map({ KeyIndex(Int32($0)) }) == publish.keys else {
      return "carries \(publish.keys.map(\.rawValue)), not \(leaving)"
    }
    let entries = leaving.compactMap { keys[$0].ready }
    guard entries.count == leaving.count else { return "carries a key that has nothing to send" }
    if let wrong = wrongContent(of: publish, leaving, entries, at: now) { return wrong }
    let grace = Duration.milliseconds(
      Int64((entries.compactMap(\.transition).max() ?? 0) * 1000)
    )
    lanes.windows.sent(.key(leader), lane: lane, isAction: keys[leader].isAction, at: now)
    for (place, entry) in zip(leaving, entries) { leave(place, entry, grace: grace, at: now) }
    return nil
  }

  private func isForGroup(_ publish: CommandPublish) -> Bool {
    groups.keys.contains { keys[$0].property.command.topic == publish.topic }
  }

  /// Records the turn of a key in its lane; returns what is wrong with it, if anything.
  mutating func turnIsWrong(of leader: Int, at now: Moment) -> String? {
    let device = keys[leader].device
    let lane = keys[leader].lane
    let isUrgent = keys[leader].ready?.isUrgent ?? false
    if let waiting = urgentWaiting(in: lane), !isUrgent {
      return "left before \(keys[waiting].property.id), which is urgent"
    }
    if !isClosing, !fitsWindow(leader) {
      return "left although \(lanes.windows.inFlight(in: lane)) are in flight in its lane"
    }
    return lanes.left(
      device: device,
      lane: lane,
      isUrgent: isUrgent,
      ignoresLimits: isClosing,
      waiting: devicesWaiting(in: lane),
      at: now
    )
  }

  /// The keys whose turn it may have been: the urgent one, or all waiting ones.
  private func leaders(of publish: CommandPublish) -> [Int] {
    let waiting = publish.keys.map { Int($0.rawValue) }.filter { isInLane($0) }
    if let urgent = waiting.first(where: { keys[$0].ready?.isUrgent ?? false }) { return [urgent] }
    if waiting.contains(where: { keys[$0].queued != nil }) { return waiting }
    // A value that its group's message may carry is never sent along with another one's.
    return [waiting.first { waitsForGroup($0) } ?? waiting[0]]
  }

  private func urgentWaiting(in lane: Int) -> Int? {
    places.first { keys[$0].lane == lane && isInLane($0) && keys[$0].ready?.isUrgent == true }
  }

  /// Devices with a command in the lane that is not urgent.
  private func devicesWaiting(in lane: Int) -> [Int] {
    var found: [Int] = []
    for place in places
    where keys[place].lane == lane && isInLane(place) && keys[place].ready?.isUrgent == false {
      if found.last != keys[place].device { found.append(keys[place].device) }
    }
    return found
  }

  /// The keys to send in one message with the leader, in order.
  private mutating func gather(
    _ publish: CommandPublish,
    leader: Int,
    at now: Moment
  ) -> [Int] {
    let road = keys[leader].property.command
    guard registry.devices[keys[leader].device].merge, road.payload.isObject else {
      return [leader]
    }
    var leaving: [Int] = []
    for place in places where keys[place].device == keys[leader].device {
      guard place != leader else {
        leaving.append(place)
        continue
      }
      guard keys[place].hasNewer, !keys[place].isSending, !keys[place].isAction,
        !keys[place].isWithheld, !awaitsRetained(place), !waitsForGroup(place), !mustWait(place),
        keys[place].property.command.topic == road.topic
      else { continue }
      flush(place, at: now)
      if keys[place].ready != nil { leaving.append(place) }
    }
    return leaving
  }

  private func wrongContent(
    of publish: CommandPublish,
    _ leaving: [Int],
    _ entries: [KeyModel.Entry],
    at now: Moment
  ) -> String? {
    let road = keys[leaving[0]].property.command
    guard publish.topic == road.topic, publish.qos == 1 else {
      return "has the wrong topic or quality of service"
    }
    let wires = zip(leaving, entries).map { keys[$0].property.wireValue(of: $1.value) }
    let payload: String
    if road.payload.isObject {
      var members = zip(leaving, wires).map { "\"\(keys[$0].property.id)\":\(Self.text($1))" }
      if let transition = entries.compactMap(\.transition).last {
        members.append("\"transition\":\(Self.text(JSONValue(shortest: transition)))")
      }
      payload = "{\(members.joined(separator: ","))}"
    } else {
      payload = wires[0].scalarText ?? ""
    }
    let found = String(decoding: publish.payload, as: UTF8.self)
    guard found == payload else { return "says \(found), not \(payload)" }
    let rest = entries.map { now.duration(to: $0.expiresAt) }.min() ?? .zero
    guard publish.expiry == max(rest, .seconds(1)) else { return "expires at the wrong time" }
    return nil
  }

  private static func text(_ wire: JSONValue) -> String {
    String(decoding: JSONWriter.bytes(wire), as: UTF8.self)
  }

  mutating func leave(
    _ place: Int,
    _ entry: KeyModel.Entry,
    grace: Duration,
    at now: Moment
  ) {
    if let older = keys[place].flight {
      keys[place].pass(older.entry.value)
      emit(.superseded, older.entry, place, reason: "newer value")
    }
    if !keys[place].isUncertain {
      keys[place].isUncertain = true
      keys[place].start = keys[place].actual
    }
    if keys[place].travels {
      keys[place].passed.append(entry.value)
      keys[place].isStopped = false
      keys[place].isGoalNewest = false
      keys[place].progressAt = nil
      keys[place].begunAt = now
      keys[place].patience = max(keys[place].property.confirm?.within ?? .zero, grace)
    }
    _ = keys[place].takeReady()
    for other in places where keys[other].ends.contains(KeyIndex(Int32(place))) {
      if keys[other].flight?.entry.isUrgent == true { keys[other].flight?.isOvertaken = true }
    }
    if entry.isUrgent {
      for other in keys[place].ends.map({ Int($0.rawValue) }) {
        if keys[other].travels { keys[other].drivenUntil = now.advanced(by: .seconds(300)) }
        if keys[other].property.state != nil { outdatedKeys.insert(other) }
      }
    }
    keys[place].flight = KeyModel.Flight(entry: entry, confirmBy: nil, grace: grace)
    keys[place].overridden = nil
    emit(.sending, entry, place)
  }

  /// A value that could be sent now and is not, if any.
  func keptBack(at now: Moment) -> String? {
    guard isConnected else { return nil }
    for place in places where isInLane(place) {
      guard isClosing || lanes.nextToken(of: keys[place].lane, after: now) <= now,
        isClosing || fitsWindow(place)
      else { continue }
      return "key \(place) may leave and does not"
    }
    return nil
  }

  // MARK: - The broker's replies

  mutating func finish(
    _ publishKeys: [KeyIndex],
    _ outcome: PublishOutcome,
    at now: Moment
  ) {
    for key in publishKeys {
      let place = Int(key.rawValue)
      guard let flight = keys[place].flight else { continue }
      if outcome == .acknowledged {
        if !flight.isEnded { keys[place].drivenUntil = nil }
        lanes.windows.acknowledged(place, at: now)
      } else {
        lanes.windows.ended(.key(place))
      }
      if flight.isEnded {
        keys[place].flight = nil
      } else {
        switch outcome {
        case .acknowledged: acknowledged(flight, place, at: now)
        case .refused(let reason): fail(flight, place, reason: reason)
        case .lost: lost(flight, place)
        }
      }
      failIfActionIsOffline(place)
    }
  }

  private mutating func acknowledged(_ flight: KeyModel.Flight, _ place: Int, at now: Moment) {
    emit(.sent, flight.entry, place)
    guard keys[place].canConfirm, let confirm = keys[place].property.confirm else {
      keys[place].flight = nil
      if !keys[place].isAction { keys[place].lastSent = flight.entry.value }
      return
    }
    if flight.isShown {
      confirmed(flight, place, at: now)
    } else {
      keys[place].flight?.confirmBy = now.advanced(by: confirm.within + flight.grace)
    }
  }

  mutating func confirmed(_ flight: KeyModel.Flight, _ place: Int, at now: Moment) {
    keys[place].flight = nil
    keys[place].confirm(flight.entry.value, at: now)
    emit(.confirmed, flight.entry, place)
  }

  mutating func fail(_ flight: KeyModel.Flight, _ place: Int, reason: String) {
    keys[place].flight = nil
    keys[place].goal = nil
    keys[place].pass(flight.entry.value)
    emit(.failed, flight.entry, place, reason: reason)
  }

  private mutating func lost(_ flight: KeyModel.Flight, _ place: Int) {
    if keys[place].isAction {
      fail(flight, place, reason: "the connection to the broker was lost")
    } else if keys[place].hasNewer {
      supersede(flight, place)
    } else {
      again(flight, place)
    }
  }

  mutating func supersede(_ flight: KeyModel.Flight, _ place: Int) {
    keys[place].flight = nil
    keys[place].pass(flight.entry.value)
    emit(.superseded, flight.entry, place, reason: "newer value")
  }

  mutating func again(_ flight: KeyModel.Flight, _ place: Int) {
    keys[place].flight = nil
    keys[place].ready = flight.entry
    keys[place].ready?.attempt += 1
  }
}
