// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
package import LastOut
import Routing

/// One step: the effects of everything that happened since the step before.
extension GatewayCore {
  /// The next effect of a step; `nil` ends the step.
  ///
  /// `host` says what the host can do now, after it performed the effects before. Each effect is
  /// decided when it is asked for, so an outcome that arrives while the host performs one counts.
  package mutating func nextEffect(at now: Moment, host: HostState) -> Effect? {
    if isEnded { return outbox.popNotice() }
    if stage == .idle { begin(at: now) }
    while true {
      switch stage {
      case .idle: preconditionFailure("A step that has begun is in one of its stages.")
      case .reloading:
        stage = .store
        if let effect = continueReload(at: now) { return effect }
      case .store:
        if let work = durability?.nextWork(identifiers, at: now) { return .write(work) }
        stage = .publishing
      case .publishing:
        if let effect = nextPublish(at: now, host) { return effect }
        collectOutcomes(at: now)
        stage = .emitting
      case .emitting:
        if let effect = popReady() { return effect }
        if groups.takeNews() || hasUnrecordedEvents {
          collectOutcomes(at: now)
          continue
        }
        // An event may have released a key, which nothing but this step would send. A reload asks
        // for the next step itself.
        if !isReloading, let effect = nextPublish(at: now, host) {
          stage = .publishing
          return effect
        }
        if hasUnrecordedEvents { continue }
        stage = .states
      case .states:
        if let effect = nextState(at: now, host) { return effect }
        stage = .requesting
      case .requesting:
        if host.hasRoom(at: 0), let request = commands.nextRequest(at: now) {
          return .requestState(request)
        }
        stage = .ending
      case .ending:
        if let effect = advanceShutdown(at: now, host) { return effect }
        // Ending a phase may have put more into the log.
        if let notice = outbox.popNotice() { return notice }
        stage = .idle
        return nil
      }
    }
  }

  /// The next event, record or log line that is ready, outside a step; `nil` when there is none.
  ///
  /// A surface that answers a request directly asks for these first, so that replies to one client
  /// keep the order of its requests. Nothing is published.
  package mutating func nextReply(at now: Moment) -> Effect? {
    if !outbox.hasEvents { collectOutcomes(at: now) }
    return popReady()
  }

  private mutating func begin(at now: Moment) {
    advance(to: now)  // Leading values, and those without a delay, leave with their batch.
    if restorations.isDue { restoreReturned(at: now) }
    collectOutcomes(at: now)
    stage = .reloading
  }

  /// Whether something was decided that is not collected yet.
  private var hasUnrecordedEvents: Bool { !commands.log.events.isEmpty }

  /// Collects what was decided since the last call.
  mutating func collectOutcomes(at now: Moment) {
    emitEvents(at: now)
    commands.refreshGroups(at: now)
    let changed = states.collectChanges(of: &commands, apartFrom: elsewhere, at: now)
    if isStateWatched { for key in changed { outbox.append(.stateChanged(key)) } }
  }

  /// Emits what was decided since the last call and does not wait for the disk.
  private mutating func emitEvents(at now: Moment) {
    recordAppliedSteps()
    guard durability == nil else {
      durability?.advance(in: &commands, &outbox, at: now)
      return
    }
    outbox.transcript?.append(contentsOf: commands.log.events)
    outbox.emitAll(of: &commands)
  }

  private mutating func nextPublish(at now: Moment, _ host: HostState) -> Effect? {
    if host.hasRoom(at: 0), let publish = commands.nextPublish(at: now) {
      return .publish(publish)
    }
    guard !routes.isEmpty else { return nil }
    for broker in 0...settings.brokers.count where host.hasRoom(at: broker) {
      if let publish = routes.nextPublish(for: broker, at: now) {
        return .forward(publish, broker: broker)
      }
    }
    return nil
  }

  private mutating func nextState(at now: Moment, _ host: HostState) -> Effect? {
    guard isConnected, host.hasRoom(at: 0) else { return nil }
    return states.next(of: commands, at: now).map {
      .publishState($0.item, payload: $0.payload, place: $0.place)
    }
  }
}

/// The gateway's own topics.
extension GatewayCore {
  /// How many of them wait to be published.
  package var dueStateCount: Int { states.dueCount }

  /// Publishes the topics of `device` again although nothing changed.
  package mutating func repeatTargets(ofDevice device: Int) {
    states.repeatTargets(ofDevice: device)
  }

  /// ``Effect/publishState(_:payload:place:)`` found no room; it follows again.
  package mutating func statePutBack(_ place: Int32) { states.putBack(place) }
}

/// Flush everything, wait for the acknowledgements, store what is left, report.
extension GatewayCore {
  /// Stops accepting changes and flushes what is pending.
  ///
  /// ``Effect/end(_:)`` follows, at the latest after the timeout. A second call ends at once.
  package mutating func beginShutdown(at now: Moment) {
    guard shutdown == nil else {
      shutdown?.isHurried = true
      return
    }
    outbox.log(LogEntry(.info, "Shutting down", ["pending": "\(commands.pendingCount)"]))
    advance(to: now)
    shutdown = Shutdown(
      timeout: settings.shutdownTimeout,
      at: now,
      acknowledgedBefore: acknowledgedCount
    )
    commands.close(at: now)
    routes.flushAll(at: now)
  }

  /// The next effect of the shutdown, when one of its phases ends.
  mutating func advanceShutdown(at now: Moment, _ host: HostState) -> Effect? {
    guard let phase = shutdown?.phase else { return nil }
    if phase == .storing, durability?.beginClosing() ?? false { return .closeStore }
    let situation = situation(host)
    switch shutdown?.advance(situation, at: now) ?? .wait {
    case .wait: return nil
    case .store:
      durability?.flush(at: now)
      return nil
    case .report: return beginReporting(at: now)
    case .end:
      if let notice = outbox.popNotice() { return notice }
      guard var report = shutdown?.report else { return nil }
      report.isHurried = shutdown?.isHurried ?? false
      isEnded = true
      shutdown?.end()
      return .end(report)
    }
  }

  private func situation(_ host: HostState) -> Shutdown.Situation {
    Shutdown.Situation(
      isConnected: isConnected,
      hasUnsent: commands.hasUnsent || !routes.isDrained,
      hasDrained: isDrained && routes.isDrained,
      hasStore: durability != nil,
      isStoreClosed: durability?.isClosed ?? true,
      unpublished: host.backlog + states.dueCount,
      isIdle: host.isIdle && states.isEmpty
    )
  }

  /// Makes the report; the outcomes of commands, the last targets and the status follow it.
  private mutating func beginReporting(at now: Moment) -> Effect? {
    let report = makeReport()
    shutdown?.beginReporting(report, isConnected: isConnected, at: now)
    if report.unsent.isEmpty {
      outbox.log(LogEntry(.info, "Values flushed", ["sent": "\(report.sent)"]))
    }
    guard isConnected else { return nil }  // The last will says it.
    states.flush(at: now)
    // The last targets are published in this step.
    stage = .states
    return .sayOffline
  }

  private var acknowledgedCount: UInt64 {
    commands.log.statistics.acknowledged + routes.statistics.acknowledged
  }

  private func makeReport() -> ShutdownReport {
    let (unsent, kept) = unsentKeys()
    return ShutdownReport(
      sent: Int(acknowledgedCount - (shutdown?.acknowledgedBefore ?? 0)),
      unsent: unsent + routes.unsentTopics(),
      kept: kept
    )
  }

  /// Whether everything that can be sent was sent and acknowledged.
  private var isDrained: Bool {
    guard commands.isDrained else { return false }
    return
      !(durability?.withheld.contains { commands.sendQueue.isReachable($0) } ?? false)
  }

  /// The keys whose value was not acknowledged, and those of them that the journal keeps.
  private func unsentKeys() -> (unsent: [String], kept: [String]) {
    var unsent: [String] = []
    var kept: [String] = []
    for key in commands.unsentKeys() {
      let name = commands.registry[key].key
      unsent.append(name)
      if durability?.rows.keeps(key) ?? false { kept.append(name) }
    }
    return (unsent, kept)
  }
}

/// What is emitted in the next step: log lines, records and other notices, then events of commands,
/// each in the order in which they happened.
struct Outbox {
  private var notices = Deque<Effect>()
  private var events: [CommandEvent] = []
  /// How many events at the front of ``events`` were removed.
  private var head = 0
  /// See ``GatewayCore/takeTranscript()``; `nil` unless a checker wants it.
  var transcript: [CommandEvent]?

  var hasEvents: Bool { head < events.count }

  mutating func append(_ notice: Effect) { notices.append(notice) }

  /// Appends a line of the log, if there is one.
  mutating func log(_ entry: LogEntry?) {
    if let entry { notices.append(.log(entry)) }
  }

  mutating func emit(_ event: CommandEvent) { events.append(event) }

  /// Moves all events out of a state machine, in constant time where none waits here.
  mutating func emitAll(of commands: inout CommandStateMachine) {
    guard !commands.log.events.isEmpty else { return }
    if hasEvents {
      events += commands.log.events
      commands.log.events.removeAll(keepingCapacity: true)
    } else {
      events.removeAll(keepingCapacity: true)
      head = 0
      swap(&events, &commands.log.events)
    }
  }

  mutating func popNotice() -> Effect? { notices.popFirst() }

  /// The next notice, or else the next event.
  mutating func popFirst() -> Effect? {
    if let notice = notices.popFirst() { return notice }
    guard head < events.count else { return nil }
    head += 1
    let event = events[head - 1]
    if head == events.count {
      events.removeAll(keepingCapacity: true)
      head = 0
    }
    return .emit(event)
  }
}

/// Where a step of the core is; the stages of one step follow each other in this order.
enum StepStage {
  /// Between two steps.
  case idle
  /// One bounded step of a reload.
  case reloading
  /// Work for the journal's thread, which then runs beside everything that follows.
  case store
  /// Commands, then routed messages: what users wait for.
  case publishing
  /// Log lines and records, then replies and events in the order in which they happened.
  case emitting
  /// Retained topics that show where keys stand.
  case states
  /// Requests for the states of devices: they have what room is left.
  case requesting
  /// The phases of a shutdown.
  case ending
}
