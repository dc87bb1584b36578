// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import LastOut
import LastOutTesting
import Values

/// The part of the host: performs the effects of the core on the simulated world.
extension SimulatedLife {
  /// Performs one step of the core, as the host does after a batch.
  func stepCore(hasRoom: Bool) {
    let hasFarRoom = hasRoom
    guard breach == nil else { return }
    wake()
    drain()
    var hasRoom = hasRoom
    while breach == nil {
      if outstanding.count >= probabilities.window { hasRoom = false }
      var host = HostState()
      host.room = hasRoom && model.isConnected ? 1 : 0
      if world.isFarConnected, hasFarRoom { host.room |= 2 }
      host.isIdle = outstanding.isEmpty
      guard let effect = core.nextEffect(at: now, host: host) else { break }
      perform(effect, &hasRoom)
    }
    guard breach == nil else { return }
    collect()
    acceptUnchanged()
    withhold()
    if hasRoom, let kept = model.keptBack(at: now) { fail(kept) }
    if hasRoom, let kept = model.requestKeptBack(at: now) { fail(kept) }
    if hasRoom, model.isConnected, let kept = routes.keptBack(for: 0, at: now) { fail(kept) }
    if hasFarRoom, world.isFarConnected, let kept = routes.keptBack(for: 1, at: now) { fail(kept) }
    compareEvents("after a step")
    model.refreshGroups(groups.phases)
    if hasRoom, !core.isShuttingDown { checkStates() }
    checkQuiet()
  }

  /// Emits ready events outside a step, as a surface does before it replies.
  func drain() {
    var hasRoom = false
    while breach == nil, let effect = core.nextReply(at: now) { perform(effect, &hasRoom) }
    guard breach == nil else { return }
    collect()
    withhold()
    compareEvents("after emitting")
  }

  /// Performs one effect; `hasRoom` becomes false when the client accepts no more messages.
  private func perform(_ effect: Effect, _ hasRoom: inout Bool) {
    // A resumed value precedes the events that its resumption causes.
    if case .resumed(let value) = effect { return resumed(value) }
    collect()
    guard breach == nil else { return }
    switch effect {
    case .resumed: break
    case .write(let work): disk.begin(work, at: now)
    case .readClock: core.clockRead(disk.clocks.read(at: now))
    case .publish(let publish): leave(publish)
    case .requestState(let request): ask(request)
    case .forward(let publish, let broker): forward(publish, to: broker)
    case .emit(let event): emitted(event)
    case .storeHealth(let fault):
      if fault != nil, !disk.isFailing { fail("the journal is said to fail, and the disk works") }
    case .closeStore: core.storeClosed()
    case .definitionsReplaced: definitionsReplaced()
    case .reloaded: seen[.finishedReloads] += 1
    case .end(let report): ended(report)
    case .publishState(let item, let payload, let place):
      if !publishState(item, payload, place) { hasRoom = false }
    case .passOn, .endElsewhere: fail("a change is passed on without a cluster")
    case .record, .stateChanged, .log, .sayOffline: break
    }
  }

  // MARK: - Events

  /// Collects the decisions of the core since the last call, before they wait for the disk.
  func collect() {
    var found = core.takeTranscript()
    let known = min(decidedCount, found.count)
    found.removeFirst(known)
    decidedCount -= known
    let waiting = core.undeliveredEvents
    found += waiting[decidedCount...]
    decidedCount = waiting.count
    for event in found where breach == nil {
      enter(event)
      decided.append(event)
    }
    if core.changedKeyCount > 10_000 {
      fail("changed keys are never taken")
    }
  }

  /// Handles an event for the requester and the watchers.
  private func emitted(_ event: CommandEvent) {
    if isTraced { log("  out: #\(event.number) \(event.phase)") }
    if model.groups[Int(event.key.rawValue)] != nil {
      if let wrong = groups.emitted(event) { fail("\(name(event.key)) \(wrong)") }
      return
    }
    if let part = event.origin?.groupCommand { groups.emitted(event, of: part.number) }
    guard isJournalled else { return }
    let isDurable = event.phase == .accepted && event.reason == nil && !event.isAction
    if let wrong = invariants.emitted(event.phase, number: event.number, isDurable: isDurable) {
      fail(wrong)
    }
  }

  // MARK: - Publishing

  /// Records waiting values that were skipped as unchanged.
  private func acceptUnchanged() {
    for event in decided where event.phase == .unchanged && breach == nil {
      let place = Int(event.key.rawValue)
      guard model.keys[place].ready?.number == event.number else { continue }
      if let wrong = model.foundUnchanged(place, at: now) { fail("\(name(event.key)) \(wrong)") }
    }
  }

  private func leave(_ publish: CommandPublish) {
    withhold()
    model.unnecessaryParts = [:]
    acceptUnchanged()
    guard breach == nil else { return }
    model.isReloading = core.isReloading
    if let wrong = model.leaves(publish, emitted: decided, at: now) {
      return fail("\(publish.keys.map { name($0) }) \(wrong)")
    }
    compareEvents("after sending")
    guard breach == nil else { return }
    send(publish)
  }

  private func ask(_ request: StateRequestMessage) {
    withhold()
    acceptUnchanged()
    guard breach == nil else { return }
    send(request)
  }

  // MARK: - The end of a shutdown

  private func ended(_ report: ShutdownReport) {
    // Values that were unchanged in this step no longer wait.
    acceptUnchanged()
    guard breach == nil else { return }
    let unsent = model.places.filter { model.isUnsent($0) }.map { name(KeyIndex(Int32($0))) }
    let reported = Set(report.unsent)
    if let missing = unsent.first(where: { !reported.contains($0) }) {
      return fail("the report does not name \(missing), which was not sent")
    }
    if report.exitCode == 0, let lost = report.unsent.first(where: { !report.kept.contains($0) }) {
      return fail("the exit code is 0, and \(lost) is lost")
    }
    if let missing = routes.unsent(at: now).first(where: { !reported.contains($0) }) {
      return fail("the report does not name \(missing), which was not forwarded")
    }
    for name in report.kept where breach == nil { checkKept(name) }
    guard breach == nil else { return }
    if isTraced { log("the gateway has ended: \(report.description)") }
    restart(after: .shutdown)
  }

  /// The kept values of the report must be those that the next start finds: the newest of each key.
  private func checkKept(_ name: String) {
    guard let key = try? registry.index(of: name) else {
      return fail("the report keeps \(name), which there is not")
    }
    let entry = model.keys[Int(key.rawValue)]
    // Values that were sent while the rest was published no longer wait.
    guard let newest = entry.queued ?? entry.ready ?? entry.flight?.entry,
      let order = invariants.order(of: newest.number)
    else { return }
    let isKept = images.allSatisfy { image in
      image.contains { $0.key == key && $0.order == order }
    }
    if !isKept { fail("\(name) is said to be kept, and the disk has something else") }
  }
}
