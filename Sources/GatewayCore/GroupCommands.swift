// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import LastOut
package import Values

/// Commands of groups: each follows the commands of its members, and ends when all of those have.
///
/// It is told of the members' events when they are emitted, so a group's `accepted` waits for the
/// disk as its members' do.
struct GroupCommands {
  /// How far one member is.
  fileprivate enum Stage: Int {
    case waiting, accepted, sent, ended
  }

  fileprivate struct Running {
    let key: KeyIndex
    let value: Value?
    let acceptedAt: Moment
    let origin: ChangeOrigin?
    let canConfirm: Bool
    var stages: [KeyIndex: Stage] = [:]
    /// How many members are in each stage: there may be thousands of them, and each has several
    /// events.
    var counts = [0, 0, 0, 0]
    var collapsed = 0
    /// What keeps the command from being confirmed, by the member's name, in order.
    var failures: [(name: String, phase: Phase, reason: String?)] = []
    /// The members that accepted it and could not store it.
    var unstored: [(name: String, phase: Phase, reason: String?)] = []
    /// Whether any member has accepted it.
    var wasTaken = false
    /// Whether any member's command was sent.
    var wasSent = false
    var newestPhase: Phase?
  }

  /// How many members a reason names.
  fileprivate static let namedFailures = 5

  private var running: [UInt64: Running] = [:]
  /// Whether events were emitted since the last call of ``takeNews()``.
  private var hasNews = false

  var isEmpty: Bool { running.isEmpty }

  /// Begins a command that follows its members; one in `failures` was rejected at once.
  mutating func begin(
    _ number: UInt64,
    of key: KeyIndex,
    _ value: Value?,
    members: [KeyIndex],
    rejected: [(name: String, reason: String)],
    origin: ChangeOrigin?,
    canConfirm: Bool,
    at now: Moment
  ) {
    var command = Running(
      key: key,
      value: value,
      acceptedAt: now,
      origin: origin,
      canConfirm: canConfirm
    )
    for member in members { command.advance(member, to: .waiting) }
    command.failures = rejected.map { ($0.name, .rejected, $0.reason) }
    running[number] = command
  }

  /// Whether there is something new since the last call.
  mutating func takeNews() -> Bool {
    defer { hasNews = false }
    return hasNews
  }

  /// Follows an event of a member; returns the group's events that follow from it.
  mutating func observe(
    _ event: CommandEvent,
    of number: UInt64,
    named name: String
  ) -> [CommandEvent] {
    guard let stage = running[number]?.stages[event.key], stage != .ended else { return [] }
    // In place: a copy would cost as much as there are members.
    running[number]?.observe(event, named: name)
    let events = running[number]?.newEvents(number: number, at: event.at) ?? []
    if running[number]?.isDone == true { running[number] = nil }
    if !events.isEmpty { hasNews = true }
    return events
  }
}

extension GroupCommands.Running {
  var isDone: Bool { count(.ended) == stages.count }

  private func count(_ stage: GroupCommands.Stage) -> Int { counts[stage.rawValue] }

  mutating func advance(_ member: KeyIndex, to stage: GroupCommands.Stage) {
    if let before = stages.updateValue(stage, forKey: member) { counts[before.rawValue] -= 1 }
    counts[stage.rawValue] += 1
  }

  private var hasAnswered: Bool { newestPhase != nil }

  mutating func observe(_ event: CommandEvent, named name: String) {
    collapsed = max(collapsed, event.collapsed)
    switch event.phase {
    case .accepted, .sending, .sent, .confirmed, .unchanged: wasTaken = true
    case .superseded, .cancelled, .rejected, .failed, .expired: break
    }
    switch event.phase {
    case .accepted:
      if event.reason != nil { unstored.append((name, .accepted, event.reason)) }
      advance(event.key, to: .accepted)
    case .sending: break
    case .sent:
      wasSent = true
      advance(event.key, to: event.isFinal ? .ended : .sent)
    case .confirmed:
      wasSent = true
      advance(event.key, to: .ended)
    case .unchanged: advance(event.key, to: .ended)
    case .superseded, .cancelled, .rejected, .failed, .expired:
      advance(event.key, to: .ended)
      failures.append((name, event.phase, event.reason))
    }
  }

  /// The phases that all members have reached and that were not emitted.
  mutating func newEvents(number: UInt64, at now: Moment) -> [CommandEvent] {
    var events: [CommandEvent] = []
    let isRejected = isDone && !wasTaken && !hasAnswered
    if !hasAnswered, !isRejected, count(.waiting) == 0 {
      events.append(event(.accepted, number: number, at: now))
    }
    let areSent = count(.waiting) + count(.accepted) == 0
    if canConfirm, areSent, wasSent, newestPhase == .accepted, !isDone {
      events.append(event(.sent, number: number, at: now))
    }
    if isDone { events.append(event(lastPhase, number: number, isFinal: true, at: now)) }
    return events
  }

  /// The phase that the command ends in: the worst of its members'.
  private var lastPhase: Phase {
    guard !failures.isEmpty else {
      guard wasSent else { return .unchanged }
      return canConfirm ? .confirmed : .sent
    }
    let phases = failures.map(\.phase)
    if phases.contains(.failed) || phases.contains(.rejected) {
      return hasAnswered ? .failed : .rejected
    }
    if phases.contains(.expired) { return .expired }
    return phases.contains(.cancelled) ? .cancelled : .superseded
  }

  private mutating func event(
    _ phase: Phase,
    number: UInt64,
    isFinal: Bool = false,
    at now: Moment
  ) -> CommandEvent {
    defer { newestPhase = phase }
    return CommandEvent(
      ofGroup: key,
      phase,
      value: value,
      collapsed: phase == .accepted ? 0 : collapsed,
      number: number,
      acceptedAt: acceptedAt,
      at: now,
      reason: reason(phase),
      origin: origin,
      isFinal: isFinal
    )
  }

  /// Names the members that are not confirmed, or have not stored the value, and why.
  private func reason(_ phase: Phase) -> String? {
    let failures =
      phase == .accepted
      ? failures.filter { $0.phase == .rejected || $0.phase == .failed } + unstored : failures
    guard !failures.isEmpty else { return nil }
    let named = failures.prefix(GroupCommands.namedFailures).map { failure in
      "\(failure.name): \(failure.reason ?? failure.phase.rawValue)"
    }
    let rest = failures.count - named.count
    return named.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
  }
}

/// What a change of a group becomes: a change of each member, and one command that follows them.
extension GatewayCore {
  /// Accepts a change of a group's key: each member is asked for it, and may reject it.
  ///
  /// - Throws: Why the first member rejects it, if all of them do.
  mutating func changeMembers(
    of key: KeyIndex,
    _ change: ValueChange,
    at now: Moment,
    delay: Duration?,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    let number = commands.log.nextNumber()
    let part = GroupPart(
      key: key,
      number: number,
      name: registry.id(ofDevice: registry.device(of: key))
    )
    var members = options
    members.origin = ChangeOrigin(
      id: options.origin?.id,
      source: options.origin?.source ?? "mqtt",
      by: options.origin?.by,
      wantsPhases: true,
      group: part
    )
    let change = commands.groupChange(change, of: key)
    var accepted: [KeyIndex] = []
    var rejected: [(key: KeyIndex, error: ValidationError)] = []
    for member in registry.groups.members(of: key) {
      do throws(ValidationError) {
        let change = try commands.memberChange(change, for: member)
        if !elsewhere.executesParts(of: registry.device(of: member)) {
          outbox.append(
            .passOn(
              PassedChange(
                member: member,
                change: change,
                options: options,
                number: number
              )
            )
          )
          accepted.append(member)
          continue
        }
        try accept(change, of: member, at: now, delay: delay, members)
        accepted.append(member)
      } catch {
        rejected.append((member, error))
      }
    }
    if accepted.isEmpty, let first = rejected.first { throw first.error }
    for (member, error) in rejected {
      commands.log.reject(
        member,
        reason: error.description,
        at: now,
        origin: members.origin
      )
    }
    var value: Value?
    if case .set(let given) = change { value = given }
    commands.log.recordGroupPhase(.accepted, of: number, for: key, at: now)
    groups.begin(
      number,
      of: key,
      value,
      members: accepted,
      rejected: rejected.map { (name(ofMember: $0.key), $0.error.description) },
      origin: options.origin,
      canConfirm: registry.definition(of: key).property.confirm != nil,
      at: now
    )
  }

  /// The next notice or event; events of groups follow those of their members.
  mutating func popReady() -> Effect? {
    guard let effect = outbox.popFirst() else { return nil }
    guard !groups.isEmpty, case .emit(let event) = effect, let part = event.origin?.groupCommand
    else {
      return effect
    }
    follow(event, ofGroup: part.number)
    return effect
  }

  /// Follows an event of a member, and emits what follows of the group.
  mutating func follow(_ event: CommandEvent, ofGroup number: UInt64) {
    let name = name(ofMember: event.key)
    for event in groups.observe(event, of: number, named: name) {
      commands.log.recordGroupPhase(
        event.phase,
        of: event.number,
        for: event.key,
        at: event.at
      )
      outbox.emit(event)
    }
  }

  /// How a reason names a member.
  private func name(ofMember key: KeyIndex) -> String {
    registry.id(ofDevice: registry.device(of: key))
  }
}

/// Groups of bridges whose messages carry what a scene gives all of their members, although nobody
/// asked for the group.
extension GatewayCore {
  /// How long after one such message the next may follow: a Zigbee mesh has room for about one
  /// broadcast a second.
  private static var broadcastPause: Duration { .seconds(1) }

  /// States of which groups (devices, by number) the bridge has announced in this connection that
  /// it has exactly the members that they have here; of no others, so that no other lamp lights.
  package mutating func setBridgeGroups(_ devices: Set<Int>) {
    commands.bridgeGroups = devices
  }

  /// The groups whose messages may carry these values, by the places of the values.
  mutating func carriers(
    of values: [(key: KeyIndex, value: Value)],
    at now: Moment
  ) -> [Int: GroupPart] {
    var parts: [Int: GroupPart] = [:]
    for (group, places) in carriable(values, at: now) {
      let part = GroupPart(key: group, number: commands.log.nextNumber(), name: nil)
      for place in places { parts[place] = part }
    }
    if !parts.isEmpty { carriesAgain = now.advanced(by: Self.broadcastPause) }
    return parts
  }

  /// The values of a scene as its messages show them: what a group's message may carry is one value
  /// of that group.
  package func carried(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment
  ) -> [(key: KeyIndex, value: Value)] {
    var values = values
    let groups = carriable(values, at: now)
    for (group, places) in groups { values[places[0]].key = group }
    for place in groups.flatMap({ $0.places.dropFirst() }).sorted(by: >) {
      values.remove(at: place)
    }
    return values
  }

  /// The keys of a group of which these values give every member the same one, and the places of
  /// those; of several groups the one with most members.
  private func carriable(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment
  ) -> [(group: KeyIndex, places: [Int])] {
    guard !commands.bridgeGroups.isEmpty, elsewhere.isEmpty, carriesAgain <= now,
      !values.contains(where: { commands.isGroup($0.key) }),
      !commands.stating(values).contains(where: \.rides)
    else { return [] }
    let places = Dictionary(values.indices.map { (values[$0].key, $0) }) { $1 }
    let groups = commands.bridgeGroups.sorted { (-memberCount($0), $0) < (-memberCount($1), $1) }
    for group in groups {
      let found = carriable(values, by: group, places)
      if !found.isEmpty { return found }
    }
    return []
  }

  /// The same of one group, whose message carries all values of its members' devices.
  private func carriable(
    _ values: [(key: KeyIndex, value: Value)],
    by group: Int,
    _ places: [KeyIndex: Int]
  ) -> [(group: KeyIndex, places: [Int])] {
    var found: [(group: KeyIndex, places: [Int])] = []
    var devices: Set<Int> = []
    for key in registry.indices(ofDevice: group).map({ KeyIndex($0) }) {
      let members = registry.groups.members(of: key)
      devices.formUnion(members.map { registry.device(of: $0) })
      let carried = members.compactMap { places[$0] }
      guard carried.count == members.count, carried.count >= settings.commands.fewestCarried,
        isSame(values[carried[0]].value, for: [key] + members),
        carried.allSatisfy({ values[$0].value == values[carried[0]].value })
      else { continue }
      found.append((key, carried))
    }
    // Where the devices get other values too, each has a message of its own anyway.
    let count = values.count { devices.contains(registry.device(of: $0.key)) }
    guard count == found.reduce(0, { $0 + $1.places.count }),
      devices.contains(where: { commands.sendQueue.isDeviceOnline($0) })
    else { return [] }
    return found
  }

  /// Whether messages to all these keys say the same of a value, and the devices confirm it.
  private func isSame(_ value: Value, for keys: [KeyIndex]) -> Bool {
    let first = registry[keys[0]]
    let wire = first.definition.wireValue(of: value)
    return !first.commandTopic.isEmpty
      && keys.allSatisfy { key in
        let entry = registry[key]
        return entry.command.payload == first.command.payload
          && entry.command.qos == first.command.qos
          && entry.definition.wireValue(of: value) == wire
      }
      && keys.dropFirst().allSatisfy { key in
        let property = registry.definition(of: key).property
        return property.confirm != nil && !property.states.isEmpty
      }
  }

  private func memberCount(_ device: Int) -> Int {
    registry.devices[device].group?.members.count ?? 0
  }
}
