// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// Whether all is right.
extension SimulatedLife {
  mutating func fail(_ words: String) {
    guard breach == nil else { return }
    breach = words
    if isTraced { note("BROKEN: \(words)") }
  }

  /// Compares what was told with what had to be, and enters it into the book.
  mutating func agree(_ moment: String) {
    guard breach == nil else { return }
    if machine.events.isEmpty, model.expected.isEmpty { return }
    for event in machine.events { enter(event) }
    let told = machine.events.map { ExpectedEvent($0) }
    machine.events.removeAll(keepingCapacity: true)
    machine.changedKeys.removeAll(keepingCapacity: true)
    if let difference = Self.difference(told, model.expected) {
      fail("\(moment): \(difference)")
    }
    model.expected.removeAll(keepingCapacity: true)
    listen()
  }

  /// Each command's events have to come in order; between commands no order is promised.
  private static func difference(_ told: [ExpectedEvent], _ expected: [ExpectedEvent]) -> String? {
    guard told != expected else { return nil }
    var rest = expected
    for event in told {
      guard let place = rest.firstIndex(where: { $0.number == event.number }) else {
        return "told \(event), which nobody expected"
      }
      let due = rest.remove(at: place)
      guard due == event else { return "told \(event), expected \(due)" }
    }
    return rest.first.map { "expected \($0), which was not told" }
  }

  private mutating func enter(_ event: CommandEvent) {
    if isTraced { note("  told \(ExpectedEvent(event)), value \(acceptedCount)") }
    count(event)
    let isOnline = model.isOnline(Int(event.key.rawValue))
    let property = registry[event.key].property
    if event.phase == .accepted { acceptedCount += 1 }
    if model.isWatched || isJournalled || event.origin != nil, event.reason != Self.tooOld,
      let wrong = ledger.note(event, of: property, order: acceptedCount, isOnline: isOnline)
    {
      fail("#\(event.number) of \(name(event.key)) \(wrong)")
    }
    if isJournalled { remember(event, isAction: property.kind.isAction) }
  }

  private mutating func count(_ event: CommandEvent) {
    switch event.phase {
    case .confirmed: seen.confirmed += 1
    case .failed: seen.failed += 1
    case .expired: seen.expired += 1
    case .cancelled: seen.cancelled += 1
    case .unchanged: seen.unchanged += 1
    case .superseded:
      seen.superseded += 1
      if event.reason == "changed at the device" { seen.byHand += 1 }
    case .accepted, .rejected, .sending, .sent: break
    }
  }

  /// Every answer the machine gives, against the model's.
  mutating func check() {
    guard breach == nil else { return }
    for place in model.places {
      let key = KeyIndex(Int32(place))
      checkPending(key, place)
      checkStatus(key, place)
    }
    if machine.pendingCount != model.queuedCount + model.readyCount {
      fail("\(machine.pendingCount) pending, not \(model.queuedCount + model.readyCount)")
    }
    if machine.isDrained != model.isDrained { fail("isDrained is \(machine.isDrained)") }
    let unsent = model.places.filter { model.isUnsent($0) }.map { KeyIndex(Int32($0)) }
    if machine.unsentKeys() != unsent {
      fail("unsent are \(machine.unsentKeys()), not \(unsent)")
    }
    let due = model.nextDeadline(after: now)
    let wake = machine.nextDeadline(after: now)
    switch (due, wake) {
    case (nil, nil): break
    case (nil, let wake?): fail("idle, but wakes up at \(wake.nanoseconds)")
    case (let due?, nil): fail("nothing would wake it at \(due.nanoseconds)")
    case (let due?, let wake?):
      if wake > due { fail("wakes up at \(wake.nanoseconds), not at \(due.nanoseconds)") }
    }
    if isJournalled { checkPromises() }
  }

  private mutating func checkPending(_ key: KeyIndex, _ place: Int) {
    let found = machine.pendingStatus(key).map {
      Model.PendingAnswer(value: $0.value, collapsed: $0.collapsed, waits: $0.waits, due: $0.due)
    }
    let due = model.pending(place)
    guard found != due else { return }
    fail("pending of \(name(key)) is \(Self.text(found)), not \(Self.text(due))")
  }

  private static func text(_ pending: Model.PendingAnswer?) -> String {
    guard let pending else { return "nothing" }
    let due = pending.due.map { "\($0.nanoseconds)" } ?? "unknown"
    return
      "\(pending.value.bareText) in \(pending.waits) until \(due), \(pending.collapsed) collapsed"
  }

  private mutating func checkStatus(_ key: KeyIndex, _ place: Int) {
    let status = machine.status(key)
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

  /// Nothing may leave: then no wake-up lies in the past, or the loop would spin.
  mutating func checkQuiet() {
    guard breach == nil, let wake = machine.nextDeadline(after: now), wake <= now else { return }
    fail("a wake-up that has passed is still set")
  }

  // MARK: - The end

  /// Everybody is there and answers, nobody asks for anything more: all has to come to its end.
  mutating func calmDown() {
    if isTraced { note("calm") }
    isCalm = true
    memory.heal()
    for device in world.devices.indices {
      world.devices[device].isDeaf = false
      power(device, isOn: true)
      for source in world.availability[device].indices {
        agenda.plan(.availability(device: device, source: source, isOnline: true), at: now)
      }
    }
    if world.isHalfOpen { cut() }
    // Whoever missed a report hears it now.
    for place in world.retained.indices {
      agenda.plan(.reminder(KeyIndex(Int32(place))), at: now)
    }
    var rounds = 0
    while breach == nil, isBusy {
      rounds += 1
      guard rounds < 5000 else { return fail("it never comes to rest") }
      moveToNext()
      wake()
      if let due = agenda.next, due.at <= now { happen() }
      finishStep()
    }
    checkEnd()
  }

  private var isBusy: Bool {
    agenda.count > 0 || machine.nextDeadline(after: now) != nil || memory.nextDeadline != nil
  }

  private mutating func checkEnd() {
    guard breach == nil else { return }
    if machine.hasUnsent || !machine.isDrained || machine.pendingCount > 0 {
      fail("something waits for ever: \(machine.unsentKeys().map { name($0) })")
    }
    if let unfinished = ledger.unfinished ?? promises.unfinished { fail(unfinished) }
    if !memory.isIdle || memory.images.contains(where: { !$0.isEmpty }) {
      fail("the memory never comes to rest")
    }
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
  /// At rest the gateway knows what each device shows, and shows nothing else as its target.
  private mutating func checkShown(_ key: KeyIndex, at place: Int) {
    guard let wire = world.retained[place] else { return }
    let shown = registry[key].property.value(fromWire: wire)
    let status = machine.status(key)
    if status.actual != shown || status.target != shown {
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

extension ValueKind {
  /// Momentary: nothing of it is ever kept.
  fileprivate var isAction: Bool {
    if case .action = self { return true }
    return false
  }
}
