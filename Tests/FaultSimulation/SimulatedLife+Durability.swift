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

/// The disk, restarts, and the values that must survive them.
extension SimulatedLife {
  // MARK: - Faults

  func startDiskFault() {
    let trouble = DiskFault.allCases[random.below(DiskFault.allCases.count)]
    let end = now.advanced(by: .milliseconds(random.within(50...20_000)))
    if isTraced { log("the disk is \(trouble)") }
    seen[.diskFaults] += 1
    disk.startFault(trouble, until: end)
  }

  /// Suspends the machine; the monotonic clock stops meanwhile.
  func sleep() {
    let length = Duration.milliseconds(random.within(1000...90_000))
    if isTraced { log("the machine sleeps for \(length)") }
    seen[.sleeps] += 1
    slept += length
    disk.sleep(for: length)
  }

  /// Checks a change that was refused for durability: correct only after the disk has failed, and
  /// never for an urgent value.
  func refusedByDisk(_ change: ValueChange, of key: KeyIndex) {
    seen[.unkept] += 1
    if isTraced { log("\(name(key)) is refused by the disk") }
    let property = registry[key].property
    if case .set(let value) = change, property.urgent.contains(value) {
      return fail("an urgent value of \(name(key)) is refused by the disk")
    }
    checkRefusalByDisk()
    compareEvents("after a refusal")
  }

  /// A change may be refused for durability only if the disk fails or is too slow.
  func checkRefusalByDisk() {
    let waiting = core.storeWaitingCount
    let isFull = waiting >= settings.commands.pendingLimit
    if !isJournalled || !(disk.isFailing || isFull) {
      fail("a change is refused by a disk that works")
    }
  }

  // MARK: - Events

  /// Records an event that depends on the disk: the model cannot predict those, only their effect.
  ///
  /// - Returns: Whether the event is one that the ledger does not know.
  func recordOutcomeOfDisk(_ event: CommandEvent) -> Bool {
    if event.phase == .expired, let survivor = stored[event.key], ledger.isUnknown(event.number) {
      stored[event.key] = nil
      seen[.expiredAtStart] += 1
      if let wrong = invariants.expired(
        survivor,
        sleep: slept,
        isTimeKnown: !isTimeDoubtful,
        at: now
      ) {
        fail(wrong)
      }
      model.expireUnresumed(survivor, number: event.number, reason: event.reason ?? "")
      remember(event)
      return true
    }
    if event.phase == .rejected, event.reason?.hasPrefix("the journal cannot be written") ?? false,
      !model.expected.contains(where: { $0.number == event.number })
    {
      if !disk.isFailing { fail("a value is rejected by a disk that works") }
      model.refuseWaiting(event.key, reason: event.reason ?? "")
      restoreUrgent(event.key)
    }
    remember(event)
    return false
  }

  /// Follows an urgent value that is back: what replaced it was rejected, before anybody was told
  /// that it had been accepted.
  private func restoreUrgent(_ key: KeyIndex) {
    let place = Int(key.rawValue)
    guard let overridden = model.keys[place].overridden, overridden.entry.expiresAt > now else {
      return
    }
    let isBack =
      core.isUrgentWaiting(key)
      || core.isInFlight(key) && !model.keys[place].isSending
    guard isBack else {
      guard invariants.isUntold(overridden.heir) else { return }
      return fail("an urgent value of \(name(key)) is not sent, and what replaced it was rejected")
    }
    seen[.restored] += 1
    guard let numbers = model.restoreUrgent(key),
      var survivor = invariants.restored(numbers.before, as: numbers.now, at: now)
    else { return fail("\(name(key)) restores a value that nobody set") }
    // A start may have given it another deadline than it was accepted with.
    survivor.expiresAt = overridden.entry.expiresAt
    ledger.resumed(survivor, as: numbers.now)
    if overridden.entry.caller != 0 { ledger.expectsFinal(overridden.entry.caller, ttl: nil) }
  }

  /// Records an event in the durability invariants.
  private func remember(_ event: CommandEvent) {
    if event.phase == .accepted, !event.isAction, let value = event.value,
      let expiresAt = event.expiresAt
    {
      let survivor = Survivor(
        key: event.key,
        value: value,
        order: acceptedCount + 1,
        expiresAt: expiresAt,
        isUrgent: registry[event.key].property.urgent.contains(value)
      )
      let id = core.identifiers.id(
        of: event.number,
        acceptedAt: event.acceptedAt,
        given: event.origin?.id
      )
      orders[Self.text(id)] = survivor.order
      invariants.accepted(survivor, as: event.number, at: event.at)
    } else if event.phase == .accepted, event.isAction, let value = event.value {
      invariants.acceptedAction(
        event.key,
        isUrgent: registry[event.key].property.urgent.contains(value),
        order: acceptedCount + 1,
        as: event.number,
        at: event.at
      )
    }
    let isReplaced =
      event.phase == .superseded && event.reason == "newer value"
      || event.phase == .cancelled && event.reason == "urgent"
    invariants.decided(
      event.phase,
      number: event.number,
      isReplaced: isReplaced,
      isHeard: isHeard(event)
    )
  }

  /// Whether any client receives an event: watchers, MQTT, or otherwise the requester.
  private func isHeard(_ event: CommandEvent) -> Bool {
    switch event.phase {
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: true
    case .accepted: model.isWatched || event.origin != nil
    case .superseded, .sending:
      model.isWatched || event.origin.map { $0.wantsPhases || event.value == nil } ?? false
    }
  }

  // MARK: - Restart

  func resumed(_ value: ResumedValue) {
    seen[.replayed] += 1
    guard let order = orders[Self.text(value.id)], var survivor = stored[value.key] else {
      return fail("\(name(value.key)) resumes a value that nobody set")
    }
    if isTraced { log("\(name(value.key)) resumes value \(order), \(value.value)") }
    stored[value.key] = nil
    survivor.expiresAt = value.expiresAt
    survivor.value = value.value
    guard survivor.order == order else {
      return fail("\(name(value.key)) resumes another value")
    }
    if let wrong = invariants.resumes(survivor, at: now) { return fail(wrong) }
    invariants.resumed(survivor, as: value.number, at: now)
    if model.keys.contains(where: { $0.hasNewer || $0.flight != nil }) { seen[.resumedLate] += 1 }
    model.resume(survivor, number: value.number)
    ledger.resumed(survivor, as: value.number)
  }

  /// The value of a row.
  func survivor(_ entry: JournalEntry) -> Survivor {
    guard let row = entry.content.decoded as? DurableValue,
      let key = try? registry.index(of: entry.key), let order = orders[Self.text(row.id)],
      let value = try? registry[key].property.value(from: row.value)
    else { preconditionFailure("A row of \(entry.key) holds what nobody accepted.") }
    return Survivor(
      key: key,
      value: value,
      order: order,
      expiresAt: .zero,
      isUrgent: registry[key].property.urgent.contains(value),
      transition: row.options.first { $0.name == "transition" }?.value.double
    )
  }

  private static func text(_ id: JSONValue) -> String { JSONWriter.text(id) }

  /// Makes the model withhold the keys that the core withholds; the crash checks verify which ones.
  func withhold() {
    guard breach == nil else { return }
    let withheld = Set(core.withheldKeys)
    if !withheld.isEmpty { seen[.withheld] += 1 }
    invariants.withheld(withheld, isDiskFailing: disk.isFailing, at: now)
    let (known, moment) = (invariants, now)
    model.withhold(withheld) { known.isDue($0, at: moment) }
  }

  // MARK: - Invariants

  /// All states that a start could find after a kill or a power cut at this point.
  var images: [[Survivor]] {
    ([disk.written] + disk.synced).map { rows in rows.values.map { survivor($0) } }
  }

  var isDiskIdle: Bool {
    guard let plan = core.storePlan else { return true }
    return plan.isIdle && !disk.isBusy && plan.fault == nil
  }

  /// Checks that a kill or a power cut at this point would violate no invariant.
  func checkDurability() {
    guard let plan = core.storePlan else { return }
    let isPrompt =
      plan.fault != nil || disk.isBusy
      || plan.nextDeadline.map { $0 <= now.advanced(by: plan.settings.commit) } ?? false
    let isIdle = isDiskIdle
    let images = images
    for image in Set(images) where breach == nil {
      if let wrong = invariants.broken(by: image, isPrompt: isPrompt, isIdle: isIdle, at: now) {
        fail(wrong)
      }
    }
    invariants.forget(except: images + [disk.rowsInProgress.values.map { survivor($0) }])
  }

  // MARK: - Reload

  /// Reloads the device files, in which only some policies differ.
  ///
  /// The core replaces the definitions in one of its next steps.
  func reload() {
    guard !core.isReloading else { return }
    seen[.reloads] += 1
    if isTraced { log("the devices are read again") }
    let next = Registry(House.devices(UInt64(random.below(4))), continuing: registry)
    core.beginReload(next, lanes: House.lanes)
  }

  /// The definitions of a reload count from now on.
  func definitionsReplaced() {
    if isTraced { log("the devices are replaced") }
    registry = core.registry
    model.reload(registry)
    compareEvents("after a reload")
  }
}
