// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import Durability
package import GatewayCore
import Journal
import LastOut
import MQTT
import Operations
import Routing

/// Performing what the core decided.
extension GatewayHost {
  func perform(_ effect: Effect, at now: Moment) {
    switch effect {
    case .write(let work): journal?.submit(work)
    case .readClock: core.clockRead(SystemClock.read())
    case .publish(let publish): self.publish(publish, at: now)
    case .forward(let publish, let broker): forward(publish, to: broker)
    case .emit(let event): emit(event, at: now)
    case .resumed(let value):
      log.debug(
        "Journalled value resumed",
        ["key": registry[value.key].key, "value": Excerpt.of(value.value.json)]
      )
    case .record(let change): record(change)
    case .stateChanged(let key): http?.changed(key)
    case .publishState(let item, let payload, let place):
      if !links[0].show(payload, on: topic(of: item)) { core.statePublishFailed(at: place) }
    case .storeHealth(let fault):
      Notify.status(fault.map { "Journal degraded: \($0)" } ?? "Running")
      publishStatus()
    case .log(let entry): log.log(entry.level.logLevel, entry.message, entry.fields)
    case .closeStore: journal?.beginClosing()
    case .sayOffline:
      links[0].enqueue(
        .init(topic: topics.status, payload: Array("offline".utf8), retain: true)
      )
      links[0].sendMessages()
    case .end(let report): end(report)
    }
  }

  private func topic(of item: StatePublisher.Item) -> String {
    switch item {
    case .target(let key): topics.target(registry[key].key)
    case .targets(let device): topics.target(registry.devices[device].id)
    case .info(let device): topics.info(registry.devices[device].id)
    }
  }

  // MARK: - Events

  /// Delivers an event to its requester, to watchers, and on its event topic.
  private func emit(_ event: CommandEvent, at now: Moment) {
    tieClocks(at: now)
    let entry = registry[event.key]
    tallies.devices[entry.device].record(event)
    if event.isNotDurable, let reason = event.reason { http?.note(.notDurable(reason), of: event) }
    let given = rejectedValues.isEmpty ? nil : rejectedValues.removeValue(forKey: event.number)
    let isPublished = event.phase.isPublished
    let responseTopic = event.isFinal ? event.origin?.responseTopic : nil
    if given != nil || onEvent != nil || http != nil || controlSocket?.hasWatchers ?? false {
      var object = encoder.object(event, key: entry.key)
      if let given { object.value = given }
      onEvent?(object)
      http?.receive(object, of: event)
      controlSocket?.sendToWatchers(object)
      if isPublished { links[0].tell(object.bytes, on: topics.event(entry.key)) }
      if let responseTopic { reply(object.bytes, on: responseTopic, to: event.origin) }
    } else if isPublished || responseTopic != nil {
      var payload: [UInt8] = []
      payload.reserveCapacity(Self.usualEvent)
      encoder.append(event, key: entry.key, withTextID: true, to: &payload)
      if isPublished { links[0].tell(payload, on: topics.event(entry.key)) }
      if let responseTopic { reply(payload, on: responseTopic, to: event.origin) }
    }
    answer(event, key: entry.key)
  }

  /// Bytes of most events, at most.
  private static var usualEvent: Int { 240 }

  /// Sends an event to the client of the control socket that requested the change.
  private func answer(_ event: CommandEvent, key: String) {
    guard let origin = event.origin, origin.replyTo != 0,
      let requester = controlSocket?.connection(origin.replyTo)
    else { return }
    if origin.wantsPhases || event.isAnswer {
      line.removeAll(keepingCapacity: true)
      encoder.append(event, key: key, to: &line)
      requester.sendLine(line)
    }
    if event.isAnswer { requester.hasReplied() }
    if event.isFinal, origin.wantsPhases { requester.endWait() }
  }

  private func reply(_ payload: [UInt8], on topic: String, to origin: ChangeOrigin?) {
    links[0].enqueue(
      .init(
        topic: topic,
        payload: payload,
        correlationData: origin?.correlationData,
        isKept: true
      )
    )
  }

  // MARK: - Recording

  /// Sends an accepted change to those who record, as a line that `simulate` plays.
  private func record(_ change: RecordedChange) {
    let operation: ControlRequest.Operation =
      switch change.operation {
      case .set(let value): .set(value.json)
      case .flush: .flush
      case .cancel: .cancel
      }
    var request = ControlRequest(operation, key: registry[change.key].key)
    request.now = change.skipsQuiet
    request.source = change.source.map(Self.shortened)
    controlSocket?.sendToRecorders(request, at: change.at)
  }

  /// The longest source that the grammar accepts, in bytes; a topic may be longer.
  private static let longestSource = 64

  private static func shortened(_ source: String) -> String {
    guard source.utf8.count > longestSource else { return source }
    var result = ""
    for character in source {
      guard result.utf8.count + character.utf8.count <= longestSource else { break }
      result.append(character)
    }
    return result
  }

  // MARK: - Shutdown

  /// Stops accepting changes and flushes what is pending.
  ///
  /// `completion` receives the report, at the latest after `shutdown.timeout`. A second call ends at
  /// once.
  package func beginShutdown(completion: @escaping (ShutdownReport) -> Void) {
    if !core.isShuttingDown {
      onEnd = completion
      controlSocket?.stopListening()
      http?.stopListening()
      links[0].makeRoom(forCommands: core.commands.pendingCount)
    }
    core.beginShutdown(at: EventLoop.now())
    step()
  }

  private func end(_ report: ShutdownReport) {
    controlSocket?.close()
    http?.close()
    for link in links { link.client.flush() }
    // Without DISCONNECT a broker publishes the last will: right where it has not taken `offline`.
    for link in links where link.isIdle { link.client.close() }
    links[0].endTelling(others: isConnected ? core.states.dueCount : 0)
    onEnd?(report)
  }

  // MARK: - The status

  /// Publishes `settle/status` again; a broken journal is a user property of it.
  func publishStatus() {
    guard isConnected, !core.isShuttingDown else { return }
    var message = BrokerLink.Message(
      topic: topics.status,
      payload: Array("online".utf8),
      retain: true
    )
    if let fault = core.durability?.fault {
      message.userProperties["journal"] = "degraded: \(fault)"
    }
    links[0].enqueue(message)
  }
}

extension LogEntry.Level {
  fileprivate var logLevel: Logger.Level {
    switch self {
    case .info: .info
    case .warning: .warning
    case .error: .error
    }
  }
}

extension Phase {
  /// Whether events of this phase are published on the key's event topic.
  fileprivate var isPublished: Bool {
    switch self {
    case .accepted, .superseded, .sending: false
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: true
    }
  }
}

extension CommandEvent {
  /// Whether this is the one direct answer to the request: `accepted` or `rejected`, or the end of a
  /// step that waited for the device's state.
  fileprivate var isAnswer: Bool {
    switch phase {
    case .accepted, .rejected: true
    case .superseded, .cancelled: value == nil
    case .unchanged, .sending, .sent, .confirmed, .failed, .expired: false
    }
  }
}
