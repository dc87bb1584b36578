// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import JSON
import LastOut
import MQTT
import MQTTTopics
import Operations

/// What comes in by MQTT: commands, states, availability, inputs, routed messages.
extension Gateway {
  /// Takes one message.
  ///
  /// Topic and payload are lent for the call.
  func received(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int
  ) {
    let now = EventLoop.now()
    advanceIfDue(at: now)
    let isHomeAssistants = broker == 0 && hearHomeAssistant(topic, payload, message)
    guard payload.count <= configuration.limits.payload else {
      if isHomeAssistants { return }
      refusals.note(
        .tooLarge,
        topic: Text.of(topic),
        reason: "\(payload.count) bytes, \(configuration.limits.payload) allowed",
        at: now
      )
      return
    }
    var isTaken = isHomeAssistants
    if broker == 0 {
      let roles = surface.roles(of: topic)
      isTaken = isTaken || !roles.isEmpty
      if !roles.isEmpty { perform(roles, topic, payload, message, at: now) }
    }
    if !configuration.routes.isEmpty {
      let isRouted = route(topic, payload, message, from: broker, at: now)
      isTaken = isTaken || isRouted
    }
    if !isTaken, broker == 0 { refuseUnknown(topic, message, at: now) }
  }

  /// A retained message that no subscription wants; MQTT 5 brokers keep most of those to themselves.
  func ignoredRetained(_ topic: String, from broker: Int) {
    refusals.noteRetained(topic: topic)
  }

  private func refuseUnknown(
    _ topic: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) {
    let name = Text.of(topic)
    guard surface.isCommandTopic(name) else { return }
    if message.flags.retained { return refusals.noteRetained(topic: name) }
    let reason = unknownKeyReason(name)
    refusals.note(.unknownKey, topic: name, reason: reason, at: now)
    let key = name.dropFirst(configuration.baseTopic.count + 1).split(separator: "/").dropLast()
    reply(to: message, key: key.joined(separator: "/"), reason: reason, at: now)
  }

  /// Answers a sender that wants an answer to something that concerns no single known key.
  private func reply(
    to message: borrowing InboundMessage,
    key: String,
    reason: String,
    at now: Moment
  ) {
    guard let origin = origin(of: message), let topic = origin.responseTopic else { return }
    tieClocks(at: now)
    let object = identifiers.rejection(
      key: key,
      source: origin.source,
      reason: reason,
      at: now,
      number: machine.nextNumber()
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

  /// Says which device or property is not there, and what was probably meant.
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

  private func route(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int,
    at now: Moment
  ) -> Bool {
    let keys = routes.lanes(fedBy: topic, broker: broker)
    if let keys, keys.isEmpty { return false }
    guard shutdown == nil else {
      refusals.note(.closing, topic: Text.of(topic), reason: "shutting down", at: now)
      return true
    }
    let trail = message.userProperty(MQTTSurface.routeMark) ?? ""
    if !trail.isEmpty, RouteTrail.leads(trail, backTo: surface.routeName) {
      refusals.note(.loop, topic: Text.of(topic), reason: "it came back to where it left", at: now)
      return true
    }
    let verdict: RouteMachine.Verdict =
      if let keys {
        routes.received(
          payload,
          for: keys,
          retained: message.flags.retained,
          trail: trail,
          at: now
        )
      } else {
        .overflow
      }
    switch verdict {
    case .noRoute: return false
    case .taken: break
    case .retained: refusals.noteRetained(topic: Text.of(topic))
    case .overflow:
      refusals.note(
        .overflow,
        topic: Text.of(topic),
        reason: "limits.pending is \(configuration.limits.pending)",
        at: now
      )
    }
    return true
  }

  private func perform(
    _ roles: [TopicTable.Role],
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) {
    // Read once, however many properties share the topic.
    var document: JSONValue?
    for role in roles {
      switch role {
      case .state, .availability:
        if payload.isEmpty { continue }
        let known = document ?? StatePayload.read(payload)
        document = known
        hear(role, known, at: now)
      case .status: hearStatus(payload, isRetained: message.flags.retained)
      case .deviceGet(let device):
        echo.repeatTargets(ofDevice: device)
      case .set, .step, .toggle, .flush, .cancel, .deviceSet, .input:
        if message.flags.retained {
          refusals.noteRetained(topic: Text.of(topic))
          continue
        }
        do throws(ValidationError) {
          try obey(role, topic, payload, message, at: now)
        } catch {
          refusals.note(
            Refusals.Kind(error),
            topic: Text.of(topic),
            reason: error.description,
            at: now
          )
          if case .deviceSet(let device) = role {
            reply(
              to: message,
              key: registry.devices[device].id,
              reason: error.description,
              at: now
            )
          }
        }
      }
    }
  }

  private func hear(_ role: TopicTable.Role, _ document: JSONValue, at now: Moment) {
    switch role {
    case .state(let key, let source):
      let entry = registry[key]
      if let reply = entry.property.states[source].reply {
        return heard(reply, document, of: key, at: now)
      }
      guard let wire = entry.property.states[source].value.value(in: document) else { return }
      if entry.property.states[source].acknowledges {
        return machine.acknowledged(key, wire, at: now)
      }
      echoLoops.reported(key, wire, source: source)
      machine.reported(key, wire, at: now)
    case .availability(let device, let source):
      let said = registry.devices[device].availability[source].isOnline(in: document)
      guard let said else { return }
      let wasOnline = machine.isDeviceOnline(device)
      machine.availability(ofDevice: device, source: source, isOnline: said, at: now)
      guard machine.isDeviceOnline(device) != wasOnline else { return }
      http?.cameOrWent(device: device)
      announcements?.cameOrWent(device)
    case .set, .step, .toggle, .flush, .cancel, .deviceSet, .deviceGet, .input, .status: break
    }
  }

  private func heard(
    _ reply: ReplySource,
    _ document: JSONValue,
    of key: KeyIndex,
    at now: Moment
  ) {
    guard case .integer(let message)? = reply.id.value(in: document) else { return }
    let problem = reply.error?.value(in: document).map { Excerpt.of(StatePayload.word($0)) }
    machine.replied(key, to: message, problem: problem, at: now)
  }

  /// Somebody is online at this base topic already.
  private func hearStatus(_ payload: Span<UInt8>, isRetained: Bool) {
    // Later it is what this gateway said itself, kept by a broker that was down meanwhile.
    guard isRetained, !hasSeenOther, connectionCount == 1,
      Bytes.areEqual(payload, Array("online".utf8))
    else { return }
    hasSeenOther = true
    log.warning(
      "Another gateway is online at this base topic: both will act on every command",
      ["topic": surface.statusTopic]
    )
  }

  private func obey(
    _ role: TopicTable.Role,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) throws(ValidationError) {
    switch role {
    case .set(let key): try set(key, topic, payload, message, at: now)
    case .step(let key):
      let origin = origin(of: message)
      try answering(key, origin, at: now) { () throws(ValidationError) in
        try take(.step(try StepPayload.read(payload)), of: key, at: now, origin: origin)
      }
    case .toggle(let key):
      let origin = origin(of: message)
      try answering(key, origin, at: now) { () throws(ValidationError) in
        try breakEchoLoop(toggling: key, by: topic, at: now)
        try take(.toggle, of: key, at: now, origin: origin)
      }
    case .flush(let key): flush(key, at: now, source: "mqtt")
    case .cancel(let key): cancel(key, at: now, source: "mqtt")
    case .deviceSet(let device): try set(device: device, topic, payload, message, at: now)
    case .input(let number): try input(configuration.inputs[number], topic, payload, at: now)
    case .state, .availability, .deviceGet, .status: break
    }
  }

  /// Runs `body`; what it refuses is told as an event too, since the key is known.
  func answering(
    _ key: KeyIndex,
    _ origin: ChangeOrigin?,
    at now: Moment,
    _ body: () throws(ValidationError) -> Void
  ) throws(ValidationError) {
    do throws(ValidationError) {
      try body()
    } catch {
      machine.reject(key, reason: error.description, at: now, origin: origin)
      throw error
    }
  }

  private func set(
    _ key: KeyIndex,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) throws(ValidationError) {
    let origin = origin(of: message)
    if let envelope = SetPayload.envelope(payload) {
      return try set(key, topic, envelope, origin, at: now)
    }
    try answering(key, origin, at: now) { () throws(ValidationError) in
      let value = try SetPayload.value(payload, of: key, in: registry)
      try breakEchoLoop(key, value, by: topic, at: now)
      try take(.set(value), of: key, at: now, origin: origin)
    }
  }

  private func set(
    _ key: KeyIndex,
    _ topic: Span<UInt8>,
    _ envelope: SetPayload.Envelope,
    _ sender: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let origin = ChangeOrigin(
      id: envelope.id,
      source: envelope.source ?? "mqtt",
      responseTopic: sender?.responseTopic,
      correlationData: sender?.correlationData
    )
    try answering(key, origin, at: now) { () throws(ValidationError) in
      let value = try registry.value(from: try envelope.value(), of: key)
      try breakEchoLoop(key, value, by: topic, at: now)
      try take(.set(value), of: key, at: now, origin: origin)
    }
  }

  private func input(
    _ input: InputConfiguration,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    at now: Moment
  ) throws(ValidationError) {
    guard let found = input.value.value(in: StatePayload.read(payload)),
      let change = input.map[StatePayload.word(found)]
    else { return }
    let key = try registry.index(of: change.key)
    let origin = ChangeOrigin(source: "input:\(input.topic)")
    try answering(key, origin, at: now) { () throws(ValidationError) in
      switch change.operation {
      case .set(let value):
        let value = try registry.value(from: value, of: key)
        try breakEchoLoop(key, value, by: topic, at: now)
        try take(.set(value), of: key, at: now, origin: origin)
      case .step(let amount): try take(.step(amount), of: key, at: now, origin: origin)
      case .toggle:
        try breakEchoLoop(toggling: key, by: topic, at: now)
        try take(.toggle, of: key, at: now, origin: origin)
      }
    }
  }

  /// Who asked, where it matters: a sender that wants an answer.
  func origin(of message: borrowing InboundMessage) -> ChangeOrigin? {
    guard let topic = message.responseTopic, Topic.problem(inName: topic) == nil else { return nil }
    return ChangeOrigin(
      source: "mqtt",
      responseTopic: topic,
      correlationData: message.correlationData
    )
  }
}
