// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Values

/// The part of the host: performs the effects of the core on the simulated world.
extension HouseholdLife {
  func wake() {
    guard breach == nil else { return }
    core.advance(to: now)
    collect()
    guard traits.isJournalled, breach == nil, let result = disk.advance(to: now) else { return }
    core.storeFinished(result, at: now)
    drain()
  }

  func step() {
    guard breach == nil else { return }
    wake()
    drain()
    while breach == nil {
      var host = HostState()
      host.room = broker.isConnected && broker.outstanding.count < 20 ? 1 : 0
      host.isIdle = broker.outstanding.isEmpty
      guard let effect = core.nextEffect(at: now, host: host) else { break }
      perform(effect)
    }
    collect()
  }

  private func drain() {
    while breach == nil, let effect = core.nextReply(at: now) { perform(effect) }
    collect()
  }

  private func perform(_ effect: Effect) {
    // A resumed value precedes the events that its resumption causes.
    if case .resumed(let value) = effect { return resumed(value) }
    collect()
    switch effect {
    case .write(let work):
      disk.begin(work, at: now)
      if let end = disk.endsAt, now.duration(to: end) > .milliseconds(500) {
        seen[.slowCommits] += 1
      }
    case .readClock: core.clockRead(disk.clocks.read(at: now))
    case .publish(let publish): leave(publish)
    case .emit(let event):
      guard event.phase == .accepted, let intent = intent(of: event) else { return }
      commands.undurable[.init(key: Int(event.key.rawValue), intent: intent)] = nil
    case .closeStore: core.storeClosed()
    case .reloaded: reloaded()
    case .resumed, .requestState, .forward, .passOn, .endElsewhere, .record, .stateChanged,
      .publishState, .definitionsReplaced, .storeHealth, .log, .sayOffline, .end:
      break
    }
  }

  // MARK: - Events

  /// Handles the decisions of the core since the last call, before they wait for the disk.
  func collect() {
    var found = core.takeTranscript()
    let known = min(commands.decidedCount, found.count)
    found.removeFirst(known)
    commands.decidedCount -= known
    let waiting = core.undeliveredEvents
    found += waiting[commands.decidedCount...]
    commands.decidedCount = waiting.count
    for event in found where breach == nil { handle(event) }
  }

  /// The number of the intent that a command belongs to.
  private func intent(of event: CommandEvent) -> UInt64? {
    if case .integer(let number)? = event.origin?.id { return UInt64(number) }
    return commands.resumed[event.number]
  }

  private func handle(_ event: CommandEvent) {
    let key = Int(event.key.rawValue)
    guard registry.devices[facts[key].device].group == nil else { return }
    if event.phase == .accepted, event.origin?.source == ChangeOrigin.restore,
      let value = event.value
    {
      restores(key, value, number: event.number)
    }
    guard let intent = intent(of: event) else { return }
    if isTraced {
      let value = event.value.map { " \($0.bareText)" } ?? ""
      let why = event.reason.map { " (\($0))" } ?? ""
      log("  \(name(key))\(value) of \(intent) \(event.phase)\(why)")
    }
    let command = Expectation.Command(key: key, intent: intent)
    switch event.phase {
    case .accepted:
      guard let value = event.value else { return }
      if traits.isJournalled, !event.isAction { commands.undurable[command] = event.number }
      // An urgent value has as much patience as the one that it replaces.
      if facts[key].urgent.contains(value), commands.urgentSince[key] == nil {
        commands.urgentSince[key] = now
      }
      checkBase(command, value)
      countRelations(of: key, value)
      if commands.accepted == nil {
        expectation.asked(value, of: key, by: intent)
      } else {
        commands.accepted?.append((key, value))
      }
      return
    case .sending:
      guard let value = event.value else { return }
      commands.sending[key] = (intent, value, event.origin?.group != nil)
      let since = commands.urgentSince.removeValue(forKey: key) ?? event.acceptedAt
      if facts[key].urgent.contains(value), since.duration(to: now) >= .milliseconds(250) {
        commands.impatient.insert(intent)
      }
    case .unchanged:
      // Nothing tells a gateway yet that the device has lost its power, and with it the value; that
      // a press moves it on from where it was heard; or that it takes longer than it has to.
      let isUnpowered = !devices[facts[key].device].isPowered
      let implied = facts[key].implies
      let isElsewhere =
        isLate(key) || isPressed(key) || isSlow(key) || implied.map { isLate($0) } ?? false
      if isUnpowered || isElsewhere && !endedUnheard.contains(key) {
        expectation.excuse(key)
        if let implied { expectation.excuse(implied) }
      }
    case .confirmed: confirmedAt[key] = now
    case .failed, .expired, .cancelled, .rejected:
      if event.reason != "urgent" { commands.urgentSince[key] = nil }
    case .sent, .superseded: break
    }
    expectation.phase(event.phase, of: command, reason: event.reason, isFinal: event.isFinal)
  }

  /// Whether a message for a key is still on its way to the device, or a report from it: what it
  /// has reported is about older messages, and nothing tells a gateway so.
  func isLate(_ key: Int) -> Bool {
    timeline.contains { planned in
      switch planned {
      case .delivery(_, let message):
        message.keys.contains { sent in
          sent == key || facts[sent].moves.values.contains { $0.key == key }
        }
      case .report(let reported, _): reported == key
      default: false
      }
    }
  }

  // MARK: - Publishing

  private func leave(_ publish: CommandPublish) {
    collect()
    var parts: [IntentOrder.Part] = []
    for key in publish.keys.map({ Int($0.rawValue) }) {
      guard let sent = commands.sending[key] else {
        return fail("\(name(key)) leaves without being sent")
      }
      parts.append(
        .init(key: key, value: sent.value, intent: sent.intent, isOfGroup: sent.isOfGroup)
      )
    }
    let carried = parts
    for group in groupKeys(of: publish.topic) {
      let members = registry.groups.members(of: group).map { Int($0.rawValue) }
      guard let part = carried.first(where: { members.contains($0.key) }) else { continue }
      for member in members where !carried.contains(where: { $0.key == member }) {
        var own = part
        own.key = member
        parts.append(own)
      }
    }
    if isTraced {
      let text = String(decoding: publish.payload, as: UTF8.self)
      log("leaves: \(publish.topic) \(text), of \(parts.map(\.intent))")
    }
    if carried.count > 1, parts.contains(where: \.isOfGroup) { seen[.groupMessages] += 1 }
    for part in parts {
      endedUnheard.formUnion(facts.indices.filter { facts[part.key].ends(part.value, $0) })
    }
    judge(parts)
    send(publish)
  }

  /// Checks the order of a message at the broker.
  private func judge(_ parts: [IntentOrder.Part]) {
    if mistake == .messagesSwapped {
      guard let earlier = swapped else { return swapped = parts }
      swapped = nil
      judgeArrived(parts)
      return judgeArrived(earlier)
    }
    judgeArrived(parts)
  }

  private func judgeArrived(_ parts: [IntentOrder.Part]) {
    guard let found = order.arrived(parts) else { return }
    let isReplay = commands.replayed.contains(found.older.intent)
    if isReplay, commands.impatient.contains(found.newer.intent) { return }
    violated(
      isReplay ? .orderAfterCrash : found.clause,
      "\(name(found.older.key)) \(found.older.value.bareText) of change \(found.older.intent) "
        + "leaves after \(name(found.newer.key)) \(found.newer.value.bareText) of "
        + "\(found.newer.intent)"
    )
  }

  /// The groups' keys whose messages have this topic.
  func groupKeys(of topic: String) -> [KeyIndex] {
    registry.groups.keys.filter { registry[$0].property.command.topic == topic }
  }

  // MARK: - Crashes

  private func resumed(_ value: ResumedValue) {
    guard case .integer(let number) = value.id else {
      return fail("\(name(Int(value.key.rawValue))) resumes a value that nobody set")
    }
    if let newest = expectation.command(of: Int(value.key.rawValue)),
      commands.impatient.contains(newest.intent)
    {
      expectation.excuse(Int(value.key.rawValue))
    }
    // What ended an older value because the device had the newer one, reaches the disk with the next
    // commit.
    if let newest = expectation.command(of: Int(value.key.rawValue)),
      newest.intent > UInt64(number), expectation.phase(of: newest.key) == .unchanged
    {
      expectation.lost(newest)
    }
    expectation.resumed(Expectation.Command(key: Int(value.key.rawValue), intent: UInt64(number)))
    if isTraced { log("\(name(Int(value.key.rawValue))) resumes \(value.value) of \(number)") }
    commands.resumed[value.number] = UInt64(number)
    commands.replayed.insert(UInt64(number))
  }

  /// Ends the process, and starts another one with the rows of the disk.
  func crash() {
    if isTraced { log("the gateway is killed") }
    losses.forgetAll()
    seen[.crashes] += 1
    disk.restart(after: .killed, at: now, start: now)
    let contents = disk.contents
    let kept = Set(contents.entries.compactMap { command(in: $0) })
    for key in facts.indices {
      guard let command = expectation.command(of: key), !kept.contains(command) else { continue }
      // What was told to nobody is not promised, and what was sent before the kill may be
      // acknowledged.
      let isUntold = commands.undurable[command] != nil || expectation.phase(of: key) == .sending
      if isUntold { expectation.excuse(key) }
      guard expectation.isUnresolved(key) else { continue }
      let isPromised =
        traits.isJournalled && commands.undurable[command] == nil && !facts[command.key].isAction
        && [.accepted, .sending].contains(expectation.phase(of: key))
      if !isPromised { expectation.lost(command) }
    }
    hasCrashed = true
    commands.resumed = [:]
    commands.urgentSince = [:]
    commands.sending = [:]
    commands.undurable = [:]
    core = SimulatedLife.makeCore(registry, settings, session: seen[.crashes], at: now)
    start(contents)
    broker.isConnected = false
    broker.outstanding = []
    dropMessages()
    timeline.plan(.reconnection(generation: broker.generation), at: after(1...3000))
  }

  private func command(in entry: JournalEntry) -> Expectation.Command? {
    guard let row = entry.content.decoded as? DurableValue, case .integer(let number) = row.id,
      let key = try? registry.index(of: entry.key)
    else { return nil }
    return Expectation.Command(key: Int(key.rawValue), intent: UInt64(number))
  }
}
