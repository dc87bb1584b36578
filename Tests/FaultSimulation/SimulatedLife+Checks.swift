// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import LastOut
import Values

/// The checks.
extension SimulatedLife {
  func fail(_ words: String) {
    guard breach == nil else { return }
    breach = words
    if isTraced { log("BROKEN: \(words)") }
  }

  /// Compares the decided events with those that the model expects.
  func compareEvents(_ moment: String) {
    guard breach == nil else { return }
    collect()
    guard breach == nil else { return }
    if decided.isEmpty, model.expected.isEmpty { return }
    if let difference = Self.difference(decided.map { ExpectedEvent($0) }, model.expected) {
      fail("\(moment): \(difference)")
    }
    decided.removeAll(keepingCapacity: true)
    model.expected.removeAll(keepingCapacity: true)
  }

  /// Events of one command are ordered; between commands the order is unspecified.
  private static func difference(_ emitted: [ExpectedEvent], _ expected: [ExpectedEvent]) -> String?
  {
    guard emitted != expected else { return nil }
    var rest = expected
    for event in emitted {
      guard let place = rest.firstIndex(where: { $0.number == event.number }) else {
        return "told \(event), which nobody expected"
      }
      let due = rest.remove(at: place)
      guard due == event else { return "told \(event), expected \(due)" }
    }
    return rest.first.map { "expected \($0), which was not told" }
  }

  /// Records an event in the ledgers, before it is compared.
  func enter(_ event: CommandEvent) {
    if isTraced { log("  decided \(ExpectedEvent(event)), value \(acceptedCount)") }
    count(event)
    if isJournalled, recordOutcomeOfDisk(event) { return }
    let place = Int(event.key.rawValue)
    // The model has ended the command already, which may have been one that waited.
    let isOnline = model.isOnline(place) && !model.lacksRetained(place)
    let property = registry[event.key].property
    if event.phase == .accepted { acceptedCount += 1 }
    if model.isWatched || isJournalled || event.origin != nil,
      let wrong = ledger.record(event, of: property, order: acceptedCount, isOnline: isOnline)
    {
      fail("#\(event.number) of \(name(event.key)) \(wrong)")
    }
  }

  private func count(_ event: CommandEvent) {
    switch event.phase {
    case .confirmed: seen[.confirmed] += 1
    case .failed: seen[.failed] += 1
    case .expired: seen[.expired] += 1
    case .cancelled: seen[.cancelled] += 1
    case .unchanged: seen[.unchanged] += 1
    case .superseded:
      seen[.superseded] += 1
      if event.reason == "changed at the device" { seen[.byHand] += 1 }
    case .accepted, .rejected, .sending, .sent: break
    }
  }

  /// Compares every reply of the machine with the model's.
  func check() {
    guard breach == nil else { return }
    model.refreshGroups(groups.phases)
    for place in model.places {
      let key = KeyIndex(Int32(place))
      checkPending(key, place)
      checkStatus(key, place)
    }
    if core.pendingCount != model.queuedCount + model.readyCount {
      fail(
        "\(core.pendingCount) pending, not \(model.queuedCount + model.readyCount)"
      )
    }
    if core.areCommandsDrained != model.isDrained {
      fail("isDrained is \(core.areCommandsDrained)")
    }
    let unsent = model.places.filter { model.isUnsent($0) }.map { KeyIndex(Int32($0)) }
    if core.keysNotAcknowledged() != unsent {
      fail("unsent are \(core.keysNotAcknowledged()), not \(unsent)")
    }
    let due = model.nextDeadline(after: now)
    let wake = core.nextCommandDeadline(after: now)
    switch (due, wake) {
    case (nil, nil): break
    case (nil, let wake?): fail("idle, but wakes up at \(wake.nanoseconds)")
    case (let due?, nil): fail("nothing would wake it at \(due.nanoseconds)")
    case (let due?, let wake?):
      if wake > due { fail("wakes up at \(wake.nanoseconds), not at \(due.nanoseconds)") }
    }
    if isJournalled { checkDurability() }
  }

  private func checkPending(_ key: KeyIndex, _ place: Int) {
    let found = core.pending(key).map {
      Model.PendingAnswer(
        value: $0.value,
        collapsed: $0.collapsed,
        count: $0.count,
        waits: $0.waits,
        due: $0.due
      )
    }
    let due = model.pending(place)
    guard found != due else { return }
    fail("pending of \(name(key)) is \(Self.text(found)), not \(Self.text(due))")
  }

  private static func text(_ pending: Model.PendingAnswer?) -> String {
    guard let pending else { return "nothing" }
    let due = pending.due.map { "\($0.nanoseconds)" } ?? "unknown"
    return
      "\(pending.value.bareText) in \(pending.waits) until \(due), \(pending.collapsed) collapsed, "
      + "\(pending.count) in all"
  }

  private func checkStatus(_ key: KeyIndex, _ place: Int) {
    let status = core.status(key)
    let due = model.keys[place]
    guard status.target != due.target || status.actual != due.actual || status.phase != due.phase
    else { return }
    fail(
      "\(name(key)) has target \(Self.text(status.target)), actual \(Self.text(status.actual)), "
        + "phase \(status.phase?.rawValue ?? "none"), not \(Self.text(due.target)), "
        + "\(Self.text(due.actual)), \(due.phase?.rawValue ?? "none")"
    )
  }

  private static func text(_ value: Value?) -> String { value?.bareText ?? "unknown" }

  /// If nothing can be sent, no wake-up may stay in the past, or the loop would spin.
  ///
  /// An action that moved up may have waited too long already.
  func checkQuiet() {
    guard breach == nil, hasPassedWakeUp else { return }
    wake()
    drain()
    guard breach == nil, hasPassedWakeUp else { return }
    fail("a wake-up that has passed is still set")
  }

  private var hasPassedWakeUp: Bool {
    core.nextCommandDeadline(after: now).map { $0 <= now } ?? false
  }

  // MARK: - The end

  /// Connects and powers everything and stops requests: every command must end.
  func endFaults() {
    if isTraced { log("calm") }
    isFaultFree = true
    disk.heal()
    for device in world.devices.indices {
      world.devices[device].isDeaf = false
      power(device, isOn: true)
      for source in world.availability[device].indices {
        agenda.plan(.availability(device: device, source: source, isOnline: true), at: now)
      }
    }
    if world.isHalfOpen { cut() }
    world.isFarConnected = true
    // Clients that missed a report receive it now.
    for place in world.retained.indices {
      agenda.plan(.retainedReport(KeyIndex(Int32(place))), at: now)
    }
    var rounds = 0
    while breach == nil, isBusy {
      rounds += 1
      guard rounds < 5000 else { return fail("it never comes to rest") }
      moveToNext()
      wake()
      if let due = agenda.next, due.at <= now { performNextEvent() }
      finishStep()
    }
    checkEnd()
  }

  private var isBusy: Bool {
    agenda.count > 0 || core.nextDeadline(after: now) != nil || disk.endsAt != nil
  }

  private func checkEnd() {
    guard breach == nil else { return }
    if core.hasUnsent || !core.areCommandsDrained
      || core.pendingCount > 0
    {
      fail("something waits for ever: \(core.keysNotAcknowledged().map { name($0) })")
    }
    if let unfinished = ledger.unfinished ?? invariants.unfinished ?? groups.unfinished {
      fail(unfinished)
    }
    if isJournalled, !isDiskIdle || images.contains(where: { !$0.isEmpty }) {
      fail("the journal never comes to rest")
    }
    if let unfinished = routes.unfinished(at: now) { fail(unfinished) }
    noteExpiredRoutes()
    if let unfinished = lamps.unfinished { fail(unfinished) }
    for place in model.places {
      let key = KeyIndex(Int32(place))
      if world.lastDelivered[place] < world.lastAcknowledged[place] {
        fail("\(name(key)) was not handed the last value that left for it")
      }
      checkShown(key, at: place)
    }
  }
}

extension SimulatedLife {
  /// At rest the gateway knows the state of each device, and its target equals it.
  ///
  /// A value that nobody confirms, and that was acknowledged after the last report, is the target
  /// until the next one.
  private func checkShown(_ key: KeyIndex, at place: Int) {
    guard let wire = world.retained[place] else { return }
    let shown = registry[key].property.value(fromWire: wire)
    let status = core.status(key)
    let target = model.keys[place].lastSent ?? shown
    if status.actual != shown || status.target != target {
      fail(
        "\(name(key)) rests at target \(Self.text(status.target)), "
          + "actual \(Self.text(status.actual)), and shows \(Self.text(shown))"
      )
    }
    guard let last = world.values[place] else { return }
    if !registry[key].property.isShown(last, by: wire) {
      fail("\(name(key)) shows \(Self.text(shown)), but is at \(last.bareText)")
    }
  }
}
