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
    if isEnded { return notices.popFirst() }
    if stage == .idle { begin(at: now) }
    while true {
      switch stage {
      case .idle: preconditionFailure("A step that has begun is in one of its stages.")
      case .store:
        if let work = durability?.nextWork(identifiers, at: now) { return .write(work) }
        stage = .publishing
      case .publishing:
        if let effect = nextPublish(at: now, host) { return effect }
        settle(at: now)
        stage = .emitting
      case .emitting:
        if let effect = nextNotice(at: now) { return effect }
        stage = .states
      case .states:
        if let effect = nextState(at: now, host) { return effect }
        stage = .ending
      case .ending:
        if let effect = advanceShutdown(at: now, host) { return effect }
        // Ending a phase may have put more into the log.
        if let notice = notices.popFirst() { return notice }
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
    if emissions.isEmpty { settle(at: now) }
    return nextNotice(at: now)
  }

  private mutating func begin(at now: Moment) {
    advance(to: now)  // Leading values, and those without a delay, leave with their batch.
    settle(at: now)
    stage = .store
  }

  /// Takes up what the state machine decided since the last time.
  mutating func settle(at now: Moment) {
    recordAppliedSteps()
    if durability == nil {
      ownTranscript?.append(contentsOf: commands.events)
      emissions.takeAll(of: &commands)
    } else {
      settleDurability(at: now)
    }
    collectChangedKeys(at: now)
  }

  private mutating func settleDurability(at now: Moment) {
    var log: [LogEntry] = []
    durability?.record(in: &commands, emitting: &emissions, at: now)
    durability?.advance(in: &commands, emitting: &emissions, log: &log, at: now)
    for value in durability?.takeResumed() ?? [] { notices.append(.resumed(value)) }
    for entry in log { notices.append(.log(entry)) }
    let fault = durability?.fault
    if fault != reportedFault {
      reportedFault = fault
      notices.append(.storeHealth(fault))
    }
    if durability?.needsClock(at: now) ?? false { notices.append(.readClock) }
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

  private mutating func nextNotice(at now: Moment) -> Effect? {
    if let notice = notices.popFirst() { return notice }
    return emissions.popFirst().map { .emit($0) }
  }

  // MARK: - Keys and their topics

  private mutating func collectChangedKeys(at now: Moment) {
    guard !commands.changedKeys.isEmpty else { return }
    var keys: [KeyIndex] = []
    swap(&keys, &commands.changedKeys)
    for key in keys {
      let device = commands.registry[key].device
      if commands.takeNewTarget(of: key) {
        states.changed(key, device: device, at: now)
      } else {
        states.changedInfo(ofDevice: device, at: now)
      }
      if isStateWatched { notices.append(.stateChanged(key)) }
    }
    states.advance(to: now)
    keys.removeAll(keepingCapacity: true)
    swap(&keys, &commands.changedKeys)  // The capacity goes back.
  }

  private mutating func nextState(at now: Moment, _ host: HostState) -> Effect? {
    guard isConnected, host.hasRoom(at: 0) else { return nil }
    while let place = states.nextDue(at: now) {
      let item = states.item(at: place)
      let payload = statePayload(item, at: now)
      guard states.record(payload, at: place) else { continue }
      return .publishState(item, payload: payload, place: place)
    }
    return nil
  }

  /// The host could not publish a state after all: it is due again.
  package mutating func statePublishFailed(at place: Int32) { states.putBack(place) }

  /// Publishes the targets of a device again although nothing changed.
  package mutating func repeatTargets(ofDevice device: Int) {
    states.repeatTargets(ofDevice: device)
  }
}
