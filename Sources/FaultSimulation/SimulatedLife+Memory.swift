// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// What outlives a restart, and what is promised of it.
extension SimulatedLife {
  /// Why a value of an earlier process ends before it is a command of this one.
  static var tooOld: String { "its time passed while the gateway did not run" }

  // MARK: - Trouble

  mutating func disturbDisk() {
    let trouble = DiskTrouble.allCases[random.below(DiskTrouble.allCases.count)]
    let end = now.advanced(by: .milliseconds(random.within(50...20_000)))
    if isTraced { note("the disk is \(trouble)") }
    seen.diskTroubles += 1
    memory.disturb(trouble, until: end)
  }

  /// The whole machine sleeps; the monotonic clock stands still meanwhile.
  mutating func sleep() {
    let length = Duration.milliseconds(random.within(1000...90_000))
    if isTraced { note("the machine sleeps for \(length)") }
    seen.sleeps += 1
    slept += length
    memory.sleep(for: length)
  }

  /// Whether a change is refused because it could not be kept; what is urgent never is.
  mutating func isUnkept(_ change: CommandStateMachine.Change, of key: KeyIndex) -> Bool {
    let property = registry[key].property
    if case .action = property.kind { return false }
    if case .set(let value) = change, property.urgent.contains(value) { return false }
    guard let reason = memory.refusal(of: key, at: now) else { return false }
    if isTraced { note("\(name(key)) is refused: \(reason)") }
    seen.unkept += 1
    return true
  }

  // MARK: - The machine's events

  /// Brings an event to the memory.
  mutating func remember(_ event: CommandEvent, isAction: Bool) {
    var survivor: Survivor?
    if event.phase == .accepted, !isAction, let value = event.value,
      let expiresAt = event.expiresAt
    {
      let isUrgent = registry[event.key].property.urgent.contains(value)
      let found = Survivor(
        key: event.key,
        value: value,
        order: acceptedCount,
        expiresAt: expiresAt,
        isUrgent: isUrgent
      )
      promises.accepted(found, as: event.number)
      survivor = found
    }
    let isReplaced =
      event.phase == .superseded && event.reason == "newer value"
      || event.phase == .cancelled && event.reason == "urgent"
    promises.happened(event.phase, number: event.number, given: isReplaced)
    memory.take(event, survivor)
  }

  // MARK: - The memory's news

  /// Hears what the memory has to say, in order, and withholds what it wants withheld.
  mutating func listen() {
    guard isJournalled, breach == nil else { return }
    news += memory.takeNews()
    guard !isListening else { return }
    isListening = true
    while breach == nil, !news.isEmpty {
      hear(news.removeFirst())
      news += memory.takeNews()
    }
    isListening = false
    withhold()
  }

  private mutating func hear(_ item: MemoryNews) {
    switch item {
    case .told(let number, let phase, let isDurable):
      if isTraced { note("  out: #\(number) \(phase)\(isDurable ? ", durable" : "")") }
      if let wrong = promises.told(phase, number: number, isDurable: isDurable) { fail(wrong) }
    case .refused(let key):
      let reason = "the journal cannot be written"
      machine.refuseWaiting(key, reason: reason, at: now)
      model.refuseWaiting(key, reason: reason)
      agree("after a late refusal")
    case .replay(let survivor): resume(survivor)
    case .expired(let survivor):
      seen.expiredAtStart += 1
      if isTraced { note("value \(survivor.order) of \(name(survivor.key)) is too old") }
      if let wrong = promises.expired(
        survivor,
        sleep: slept,
        isTimeKnown: !isTimeDoubtful,
        at: now
      ) {
        return fail(wrong)
      }
      machine.expireUnresumed(
        survivor.value,
        of: survivor.key,
        at: now,
        origin: nil,
        reason: Self.tooOld
      )
      model.expireUnresumed(survivor, reason: Self.tooOld)
      agree("after what was too old")
    }
  }

  private mutating func resume(_ survivor: Survivor) {
    seen.replayed += 1
    if isTraced {
      note("\(name(survivor.key)) goes on with value \(survivor.order), \(survivor.value)")
    }
    if let wrong = promises.replays(survivor, at: now) { return fail(wrong) }
    let number = machine.resume(
      survivor.value,
      of: survivor.key,
      at: now,
      expiresAt: survivor.expiresAt,
      origin: nil,
      options: nil
    )
    if number != model.resume(survivor) { return fail("a resumed value has a wrong number") }
    memory.resumed(survivor, as: number)
    ledger.resumed(survivor, as: number)
    promises.resumed(survivor, as: number)
    agree("after a value of an earlier process")
  }

  private mutating func withhold() {
    guard breach == nil else { return }
    let wanted = memory.withheld
    for place in model.places where model.keys[place].isWithheld != wanted.contains(key(place)) {
      if model.keys[place].isWithheld {
        machine.release(key(place), at: now)
      } else {
        seen.withheld += 1
        machine.withhold(key(place), at: now)
      }
    }
    model.withhold(wanted)
    agree("after withholding")
  }

  private func key(_ place: Int) -> KeyIndex { KeyIndex(Int32(place)) }

  // MARK: - Promises

  /// Were the process killed or the power cut now, every promise would be kept.
  mutating func checkPromises() {
    let isHasty = memory.isPrompt(at: now)
    let isIdle = memory.isIdle
    let images = memory.images
    for image in Set(images) where breach == nil {
      if let wrong = promises.broken(by: image, isHasty: isHasty, isIdle: isIdle, at: now) {
        fail(wrong)
      }
    }
    promises.forget(butFor: images)
  }
}
