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
  /// - Throws: Why it is rejected. A rejection that concerns a known key is an event of that key too.
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
      .set(try context.registry.value(from: try envelope.value(), of: key))
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
