// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Devices
import GatewayCore
import JSON
import LastOut
import Routing
import Values

/// Translates messages on command topics and inputs into changes.
struct CommandMessages {
  let context: GatewayContext

  /// Executes one message.
  ///
  /// `origin` is `nil` where the sender wants no reply.
  ///
  /// - Throws: Why it is rejected. A rejection that concerns a known key is an event of that key
  ///   too.
  func receive(
    _ command: TopicTable.Command,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    switch command {
    case .set(let key): try set(key, topic, payload, origin, at: now)
    case .step(let key):
      try change(key, topic, origin, at: now) { () throws(ValidationError) in
        .step(
          try StepPayload.read(payload).number(
            for: context.registry.definition(of: key).property.kind
          )
        )
      }
    case .toggle(let key):
      try change(key, topic, origin, at: now) { () throws(ValidationError) in .toggle }
    case .flush(let key): context.core.flush(key, at: now, source: "mqtt")
    case .cancel(let key): context.core.cancel(key, at: now, source: "mqtt")
    case .scene(let id):
      let scene = try context.registry.scene(id)
      let values = scene.values(in: context.registry)
      context.set(values.filter { context.isHere($0.key) }, ChangeOptions(origin: origin), at: now)
      context.onElsewhere?(values.filter { !context.isHere($0.key) }, origin)
    case .deviceSet(let device): try set(device: device, topic, payload, origin, at: now)
    case .light(let key): try set(light: key, topic, payload, origin, at: now)
    case .input(let number):
      try receive(context.configuration.inputs[number], topic, payload, at: now)
    }
  }

  private func set(
    _ key: KeyIndex,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ sender: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    guard let envelope = SetPayload.envelope(payload) else {
      return try change(key, topic, sender, at: now) { () throws(ValidationError) in
        .set(try SetPayload.value(payload, of: key, in: context.registry))
      }
    }
    let origin = ChangeOrigin(
      id: envelope.id,
      source: envelope.source ?? "mqtt",
      responseTopic: sender?.responseTopic,
      correlationData: sender?.correlationData
    )
    try change(key, topic, origin, at: now) { () throws(ValidationError) in
      .set(
        try context.registry.value(
          from: try envelope.value(),
          written: (try? JSONParser.parseQuotingNumbers(payload))?["value"],
          of: key
        )
      )
    }
  }

  private func receive(
    _ input: InputConfiguration,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    at now: Moment
  ) throws(ValidationError) {
    guard let found = input.value.value(in: StatePayload.read(payload)),
      let mapped = input.map[StatePayload.word(found)]
    else { return }
    let registry = context.registry
    let key = try registry.index(of: mapped.key)
    // In a cluster, the session of each device that the input changes receives the message.
    guard context.concerns(device: registry.device(of: key)) else { return }
    let origin = ChangeOrigin(source: input.source ?? "input:\(input.topic)")
    try change(key, topic, origin, at: now) { () throws(ValidationError) in
      switch mapped.operation {
      case .set(let value): .set(try registry.value(from: value, of: key))
      case .step(let amount): .step(amount)
      case .toggle: .toggle
      }
    }
  }

  /// Makes the change that `read` reads from the message; a rejection is an event of its key too.
  private func change(
    _ key: KeyIndex,
    _ topic: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment,
    _ read: () throws(ValidationError) -> ValueChange
  ) throws(ValidationError) {
    do throws(ValidationError) {
      context.counters[context.registry.device(of: key)].changes += 1
      try context.core.change(
        try read(),
        of: key,
        receivedOn: Text.of(topic),
        at: now,
        ChangeOptions(origin: origin)
      )
    } catch {
      context.core.reject(key, reason: error.description, at: now, origin: origin)
      throw error
    }
  }
}

/// Messages on `settle/<device>/set`: several properties of a device change at one instant.
extension CommandMessages {
  func set(
    device: Int,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let members = try SetPayload.members(payload)
    let set = DeviceSet(
      device: device,
      members: members,
      written: members.contains(where: \.value.isReal)
        ? try? JSONParser.parseQuotingNumbers(payload) : nil
    )
    try change(set, topic, origin, at: now)
  }

  /// Messages on `settle/<device>/<property>/light/set`: a lamp in Home Assistant's JSON schema.
  ///
  /// Its power waits for the levels beside it: a lamp that is off and swept gets one message.
  func set(
    light key: KeyIndex,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let device = context.registry.device(of: key)
    let command = try SetPayload.members(payload)
    guard let members = context.lights.members(for: .object(command), of: key, in: context.registry)
    else { throw .unsupported("the property belongs to no lamp") }
    try change(
      DeviceSet(device: device, members: members),
      topic,
      origin,
      isJoint: true,
      at: now
    )
  }

  private func change(
    _ set: DeviceSet,
    _ topic: Span<UInt8>,
    _ origin: ChangeOrigin?,
    isJoint: Bool = false,
    at now: Moment
  ) throws(ValidationError) {
    let device = set.device
    do throws(ValidationError) {
      let changes = try set.changes(in: context.registry)
      let members = changes.options.isEmpty ? nil : changes.options
      try context.core.change(
        changes.values,
        receivedOn: Text.of(topic),
        at: now,
        ChangeOptions(origin: origin, members: members, isJoint: isJoint)
      )
      context.counters[device].changes += UInt64(changes.values.count)
    } catch {
      // The sender gets one reply for the whole message; each property gets an event.
      set.reject(because: error.description, origin: nil, in: context, at: now)
      throw error
    }
  }

  /// Whether a message names a property of the device, which has the event of its rejection.
  func namesProperty(_ payload: Span<UInt8>, ofDevice device: Int) -> Bool {
    guard let members = try? SetPayload.members(payload) else { return false }
    return !DeviceSet(device: device, members: members).named(in: context.registry).isEmpty
  }
}

/// Reads the payload of a `…/step` topic: a signed number or percentage, or an object with it as
/// `value`.
enum StepPayload {
  static func read(_ payload: Span<UInt8>) throws(ValidationError) -> StepAmount {
    if let amount = NumberText.parse(payload), amount.isFinite { return .number(amount) }
    if payload.count <= 40, let amount = StepAmount(percentage: Text.of(payload)) { return amount }
    if let value = (try? JSONParser.parse(payload))?["value"] {
      if let amount = value.double { return .number(amount) }
      if let amount = value.string.flatMap({ StepAmount(percentage: $0) }) { return amount }
    }
    throw .wrongType(
      found: "'\(Excerpt.of(Text.of(payload)))'",
      expected: "a signed number such as +5, or a percentage such as +10%",
      suggestion: nil
    )
  }
}

/// Translates what devices report: their states, their availability, and replies to commands.
struct DeviceReports {
  let context: GatewayContext

  /// Receives a message on one of the state topics of a property.
  func receiveState(
    of key: KeyIndex,
    source: Int,
    _ document: JSONValue,
    _ payload: Span<UInt8>,
    at now: Moment
  ) {
    let state = context.registry[key].states[source]
    if let reply = state.reply { return receiveReply(reply, document, of: key, at: now) }
    let property = context.registry.definition(of: key)
    let reading =
      property.property.readsText
      ? self.reading(of: document, payload, from: state, property.property.kind)
      : state.reading(of: document)
    switch reading {
    case .value(let wire):
      if state.acknowledges { return context.core.acknowledged(key, wire, at: now) }
      context.core.reported(key, wire, source: source, at: now)
    case .unreadable:
      if state.acknowledges { return }
      context.core.reportedUnreadable(key, document, source: source, at: now)
    case .nothing: break
    }
  }

  /// What a message says of a text, which keeps the digits and blanks that it has there.
  private func reading(
    of document: JSONValue,
    _ payload: Span<UInt8>,
    from state: StateSource,
    _ kind: ValueKind
  ) -> StateSource.Reading {
    var pointer = state.value
    if pointer.isWhole {
      if document["value"] != nil {
        pointer = JSONPointer(tokens: ["value"])
      } else if kind.numberRule != nil {
        // `10` may be in hexadecimal digits.
        return .value(document.double == nil ? document : .string(Text.of(payload)))
      } else if case .text = kind, document.string == nil {
        return .value(.string(Text.of(payload)))
      }
    }
    guard let wire = pointer.value(in: document) else { return state.reading(of: document) }
    guard wire.double != nil else { return .value(wire) }
    let written = (try? JSONParser.parseQuotingNumbers(payload)).flatMap(pointer.value(in:))
    return .value(kind.asWritten(wire, written))
  }

  /// Receives a message on one of the availability topics of a device.
  ///
  /// - Returns: Whether the device came online or went offline.
  func receiveAvailability(
    of device: Int,
    source: Int,
    _ document: JSONValue,
    isShared: Bool,
    at now: Moment
  ) -> Bool {
    let availability = context.registry.availability(ofDevice: device)[source]
    guard let isOnline = availability.isOnline(in: document) else { return false }
    return context.core.availability(
      ofDevice: device,
      source: source,
      isOnline: isOnline,
      isShared: isShared,
      at: now
    )
  }

  /// Receives a live message on the topic on which a sleeping device reports itself.
  func receiveAwake(of device: Int, _ document: JSONValue, at now: Moment) {
    guard let awake = context.registry.awake(ofDevice: device), awake.isAwake(in: document) else {
      return
    }
    context.awakeSince[device] = now
    context.core.awoke(device: device, at: now)
  }

  private func receiveReply(
    _ reply: ReplySource,
    _ document: JSONValue,
    of key: KeyIndex,
    at now: Moment
  ) {
    guard case .integer(let message)? = reply.id.value(in: document) else { return }
    let problem = reply.error?.value(in: document).map { Excerpt.of(StatePayload.word($0)) }
    context.core.replied(key, to: message, problem: problem, at: now)
  }
}

/// Reads the payload of a `…/set` topic: a bare value, JSON, or an envelope with the value, an id
/// and a source.
enum SetPayload {
  struct Envelope {
    let id: JSONValue?
    let source: String?
    let content: JSONValue

    /// The value inside; throws for members that an envelope does not have.
    func value() throws(ValidationError) -> JSONValue {
      guard case .object(let members) = content, let value = content["value"] else {
        return content
      }
      for member in members where !["value", "id", "source"].contains(member.name) {
        throw .wrongType(
          found: "member '\(Excerpt.of(member.name))' beside 'value'",
          expected: "id or source",
          suggestion: nil
        )
      }
      return value
    }
  }

  /// The envelope, if the payload is one.
  static func envelope(_ payload: Span<UInt8>) -> Envelope? {
    guard first(of: payload) == UInt8(ascii: "{") else { return nil }
    guard let document = try? JSONParser.parse(payload),
      document["value"] != nil
    else { return nil }
    return Envelope(id: document["id"], source: document["source"]?.string, content: document)
  }

  /// Reads a payload that is no envelope; a text is one byte for byte unless it is a JSON text.
  static func value(
    _ payload: Span<UInt8>,
    of key: KeyIndex,
    in registry: Registry
  ) throws(ValidationError) -> Value {
    func isText() -> Bool { registry.definition(of: key).property.kind.isText }
    switch first(of: payload) {
    case UInt8(ascii: "\""):
      if let text = try? JSONParser.parse(payload) {
        return try registry.value(from: text, of: key)
      }
      if isText() { break }
      _ = try document(payload)
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      if isText() { break }
      return try registry.value(from: try document(payload), of: key)
    case nil where payload.isEmpty || !isText():
      throw .wrongType(found: "an empty payload", expected: "a value", suggestion: nil)
    default: break
    }
    return try registry.value(fromPayload: payload, of: key)
  }

  /// The members of a device-level set.
  static func members(_ payload: Span<UInt8>) throws(ValidationError) -> [JSONValue.Member] {
    guard case .object(let members) = try document(payload) else {
      throw .wrongType(
        found: "'\(Excerpt.of(Text.of(payload)))'",
        expected: "a JSON object of properties",
        suggestion: nil
      )
    }
    return members
  }

  private static func document(_ payload: Span<UInt8>) throws(ValidationError) -> JSONValue {
    do throws(JSONParseError) {
      return try JSONParser.parse(payload)
    } catch {
      throw .wrongType(
        found: "'\(Excerpt.of(Text.of(payload)))'",
        expected: "JSON (\(error.message), column \(error.column))",
        suggestion: nil
      )
    }
  }

  private static func first(of payload: Span<UInt8>) -> UInt8? {
    for position in payload.indices {
      switch payload[position] {
      case 0x20, 0x09, 0x0A, 0x0D: continue
      default: return payload[position]
      }
    }
    return nil
  }
}
