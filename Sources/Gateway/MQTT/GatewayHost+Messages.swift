// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import GatewayCore
import JSON
import JSONParsing
import LastOut
import MQTT
import MQTTTopics
import Operations
import Routing

/// Messages received by MQTT: commands, states, availability, inputs, routed messages.
extension GatewayHost {
  /// Receives one message; topic and payload are borrowed for the call.
  func received(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int
  ) {
    let now = EventLoop.now()
    core.advanceIfDue(to: now)
    var isKnown = broker == 0 && receivedFromHomeAssistant(topic, payload, message)
    guard payload.count <= configuration.limits.payload else {
      if isKnown { return }
      let (size, limit) = (payload.count, configuration.limits.payload)
      return core.reject(
        .tooLarge,
        topic: Text.of(topic),
        reason: "\(size) bytes, \(limit) allowed",
        at: now
      )
    }
    if broker == 0 {
      let roles = topics.roles(of: topic)
      if !roles.isEmpty {
        isKnown = true
        act(on: roles, topic, payload, message, at: now)
      }
    }
    if !configuration.routes.isEmpty, route(topic, payload, message, from: broker, at: now) {
      isKnown = true
    }
    if !isKnown, broker == 0 { rejectUnknown(topic, message, at: now) }
  }

  private func rejectUnknown(
    _ topic: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) {
    let name = Text.of(topic)
    guard topics.isCommandTopic(name) else { return }
    if message.flags.retained { return core.rejectRetained(topic: name) }
    let reason = unknownKeyReason(name)
    core.reject(.unknownKey, topic: name, reason: reason, at: now)
    let key = name.dropFirst(configuration.baseTopic.count + 1).split(separator: "/").dropLast()
    reply(to: message, key: key.joined(separator: "/"), reason: reason, at: now)
  }

  /// Replies to a sender that wants a reply to something that concerns no single known key.
  private func reply(
    to message: borrowing InboundMessage,
    key: String,
    reason: String,
    at now: Moment
  ) {
    guard let origin = origin(of: message), let topic = origin.responseTopic else { return }
    tieClocks(at: now)
    let object = encoder.rejection(
      key: key,
      source: origin.source,
      reason: reason,
      at: now,
      number: core.nextNumber()
    )
    links[0].enqueue(
      .init(
        topic: topic,
        payload: object.bytes,
        correlationData: origin.correlationData,
        isKept: true
      )
    )
  }

  /// Which device or property does not exist, and what was probably meant.
  private func unknownKeyReason(_ topic: String) -> String {
    let levels = topic.dropFirst(configuration.baseTopic.count + 1).split(
      separator: "/",
      omittingEmptySubsequences: false
    )
    let key = levels.dropLast().joined(separator: "/")
    do throws(ValidationError) {
      if levels.count == 2 { _ = try registry.deviceIndex(of: key) }
      if levels.count == 3 { _ = try registry.index(of: key) }
      return "no such key"
    } catch {
      return error.description
    }
  }

  /// Hands a message to the routes that match its topic; `false` when none does.
  private func route(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int,
    at now: Moment
  ) -> Bool {
    let outputs = core.routeOutputs(of: topic, from: broker)
    if let outputs, outputs.isEmpty { return false }
    let needsDocument = outputs.map { core.routes.needsDocument($0) } ?? false
    core.route(
      payload,
      document: needsDocument ? try? JSONParser.parse(payload) : nil,
      for: outputs,
      topic: topic,
      retained: message.flags.retained,
      trail: message.userProperty(TopicMap.routeMark) ?? "",
      mark: topics.routeName,
      at: now
    )
    return true
  }

  private func act(
    on roles: [TopicTable.Role],
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) {
    // Parsed once, however many properties share the topic.
    var document: JSONValue?
    for role in roles {
      switch role {
      case .state, .availability:
        if payload.isEmpty { continue }
        let known = document ?? StatePayload.read(payload)
        document = known
        reported(role, known, at: now)
      case .status: receivedStatus(payload, isRetained: message.flags.retained)
      case .deviceGet(let device): core.repeatTargets(ofDevice: device)
      case .set, .step, .toggle, .flush, .cancel, .deviceSet, .input:
        if message.flags.retained {
          core.rejectRetained(topic: Text.of(topic))
          continue
        }
        do throws(ValidationError) {
          try execute(role, topic, payload, message, at: now)
        } catch {
          let reason = error.description
          core.reject(
            RejectionLog.Kind(error),
            topic: Text.of(topic),
            reason: reason,
            at: now
          )
          if case .deviceSet(let device) = role {
            reply(to: message, key: registry.devices[device].id, reason: reason, at: now)
          }
        }
      }
    }
  }

  private func reported(_ role: TopicTable.Role, _ document: JSONValue, at now: Moment) {
    switch role {
    case .state(let key, let source):
      let state = registry[key].property.states[source]
      if let reply = state.reply { return replied(reply, document, of: key, at: now) }
      guard let wire = state.value.value(in: document) else { return }
      if state.acknowledges { return core.acknowledged(key, wire, at: now) }
      core.reported(key, wire, source: source, at: now)
    case .availability(let device, let source):
      let said = registry.devices[device].availability[source].isOnline(in: document)
      guard let said,
        core.availability(ofDevice: device, source: source, isOnline: said, at: now)
      else { return }
      http?.availabilityChanged(ofDevice: device)
      announcements?.cameOrWent(device)
    case .set, .step, .toggle, .flush, .cancel, .deviceSet, .deviceGet, .input, .status: break
    }
  }

  private func replied(
    _ reply: ReplySource,
    _ document: JSONValue,
    of key: KeyIndex,
    at now: Moment
  ) {
    guard case .integer(let message)? = reply.id.value(in: document) else { return }
    let problem = reply.error?.value(in: document).map { Excerpt.of(StatePayload.word($0)) }
    core.replied(key, to: message, problem: problem, at: now)
  }

  /// Another gateway is online at this base topic.
  private func receivedStatus(_ payload: Span<UInt8>, isRetained: Bool) {
    // After the first connection it is this gateway's own status, which a broker kept.
    guard isRetained, !hasSeenOther, connectionCount == 1,
      Bytes.areEqual(payload, Array("online".utf8))
    else { return }
    hasSeenOther = true
    log.warning(
      "Another gateway is online at this base topic: both will act on every command",
      ["topic": topics.status]
    )
  }

  // MARK: - Commands

  private func execute(
    _ role: TopicTable.Role,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) throws(ValidationError) {
    let origin = origin(of: message)
    switch role {
    case .set(let key): try set(key, topic, payload, origin, at: now)
    case .step(let key):
      try change(key, topic, origin, at: now) { () throws(ValidationError) in
        .step(try StepPayload.read(payload))
      }
    case .toggle(let key):
      try change(key, topic, origin, at: now) { () throws(ValidationError) in .toggle }
    case .flush(let key): core.flush(key, at: now, source: "mqtt")
    case .cancel(let key): core.cancel(key, at: now, source: "mqtt")
    case .deviceSet(let device):
      try set(device: device, topic, payload, origin, at: now)
    case .input(let number): try input(configuration.inputs[number], topic, payload, at: now)
    case .state, .availability, .deviceGet, .status: break
    }
  }

  /// Makes the change that `read` reads from the message; a rejection is an event of its key too.
  private func change(
    _ key: KeyIndex,
    _ topic: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment,
    _ read: () throws(ValidationError) -> CommandStateMachine.Change
  ) throws(ValidationError) {
    do throws(ValidationError) {
      tallies.devices[registry[key].device].changes += 1
      try core.change(
        try read(),
        of: key,
        receivedOn: Text.of(topic),
        at: now,
        ChangeOptions(origin: origin)
      )
    } catch {
      core.reject(key, reason: error.description, at: now, origin: origin)
      throw error
    }
  }

  private func set(
    _ key: KeyIndex,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ sender: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let registry = registry
    guard let envelope = SetPayload.envelope(payload) else {
      return try change(key, topic, sender, at: now) { () throws(ValidationError) in
        .set(try SetPayload.value(payload, of: key, in: registry))
      }
    }
    let origin = ChangeOrigin(
      id: envelope.id,
      source: envelope.source ?? "mqtt",
      responseTopic: sender?.responseTopic,
      correlationData: sender?.correlationData
    )
    try change(key, topic, origin, at: now) { () throws(ValidationError) in
      .set(try registry.value(from: try envelope.value(), of: key))
    }
  }

  private func input(
    _ input: InputConfiguration,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    at now: Moment
  ) throws(ValidationError) {
    guard let found = input.value.value(in: StatePayload.read(payload)),
      let mapped = input.map[StatePayload.word(found)]
    else { return }
    let registry = registry
    let key = try registry.index(of: mapped.key)
    let origin = ChangeOrigin(source: "input:\(input.topic)")
    try change(key, topic, origin, at: now) { () throws(ValidationError) in
      switch mapped.operation {
      case .set(let value): .set(try registry.value(from: value, of: key))
      case .step(let amount): .step(amount)
      case .toggle: .toggle
      }
    }
  }

  /// The origin of a message, where it matters: when the sender wants a reply.
  func origin(of message: borrowing InboundMessage) -> ChangeOrigin? {
    guard let topic = message.responseTopic, Topic.problem(inName: topic) == nil else { return nil }
    return ChangeOrigin(
      source: "mqtt",
      responseTopic: topic,
      correlationData: message.correlationData
    )
  }
}
