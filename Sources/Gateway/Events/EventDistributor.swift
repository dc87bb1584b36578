// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import Operations
import Values

/// Delivers each event: to its requester, to watchers, to event streams, and on its event topic.
final class EventDistributor {
  private let context: GatewayContext
  private let mqtt: MQTTSurface
  var controlSocket: ControlSocket?
  var http: HTTPSurface?
  var cluster: ClusterMember?
  /// Receives every event.
  var onEvent: ((EventObject) -> Void)?
  /// The newest reply; kept for its memory.
  private var line: [UInt8] = []
  /// The size of most events, at most, in bytes.
  private static let usualSize = 240

  init(_ context: GatewayContext, mqtt: MQTTSurface) {
    self.context = context
    self.mqtt = mqtt
  }

  /// Delivers a step in a command's life.
  func deliver(_ event: CommandEvent, at now: Moment) {
    context.synchronizeEncoder(at: now)
    let entry = context.registry[event.key]
    context.counters[entry.device].record(event)
    context.history.record(event)
    if event.isNotDurable, let reason = event.reason {
      http?.setRejection(.notDurable(reason), of: event)
    }
    let isPublished = event.phase.isPublished
    let responseTopic = event.isFinal ? event.origin?.responseTopic : nil
    if needsObjects || context.encoder.hasRejectedValues {
      let object = context.encoder.object(event, key: entry.key)
      onEvent?(object)
      http?.receive(object, of: event)
      controlSocket?.sendToWatchers(object)
      cluster?.events.append(object)
      if isPublished || responseTopic != nil {
        publish(object.bytes, of: event, on: isPublished ? entry.key : nil, responseTopic)
      }
      context.encoder.forgetRejectedValue(of: event)
    } else if isPublished || responseTopic != nil {
      var payload: [UInt8] = []
      payload.reserveCapacity(Self.usualSize)
      context.encoder.append(event, key: entry.key, withTextID: true, to: &payload)
      publish(payload, of: event, on: isPublished ? entry.key : nil, responseTopic)
    }
    answer(event, key: entry.key)
  }

  /// Delivers the rejection of a request that reached no command; its requester has it already.
  func deliver(_ rejection: EventObject, key: KeyIndex?) {
    onEvent?(rejection)
    controlSocket?.sendToWatchers(rejection)
    http?.streams.append(rejection)
    cluster?.events.append(rejection)
    // A key that does not exist has no topic.
    guard let key else { return }
    let entry = context.registry[key]
    context.counters[entry.device].rejected += 1
    context.history.recordRejection(
      of: key,
      value: rejection.value,
      reason: rejection.reason,
      origin: ChangeOrigin(id: .string(rejection.id), source: rejection.source),
      at: EventLoop.now()
    )
    mqtt.publishEvent(rejection.bytes, of: entry.key, device: entry.device)
  }

  /// Delivers the rejection of a message to a device that names none of its properties.
  func deliver(_ rejection: EventObject, ofDevice device: Int) {
    deliver(rejection, key: nil)
    context.counters[device].rejected += 1
    mqtt.publishEvent(
      rejection.bytes,
      of: context.registry.id(ofDevice: device),
      device: device
    )
  }

  /// Reports to the core whether there are listeners, watchers, event streams or recorders.
  func updateObservers() {
    controlSocket?.updateObservers()
    let isWatched =
      onEvent != nil || (controlSocket?.hasWatchers ?? false)
      || (http?.streams.hasStreamed ?? false)
    cluster?.events.setWanted(isWatched)
    context.core.isWatched = isWatched || (cluster?.events.areWanted ?? false)
    // The other members are told what keys show.
    context.core.isStateWatched = cluster != nil || (http?.streams.stateStreamCount ?? 0) > 0
    context.core.isRecorded = controlSocket?.hasRecorders ?? false
  }

  /// Whether a surface needs the members of every event.
  private var needsObjects: Bool {
    onEvent != nil || http != nil || controlSocket?.hasWatchers ?? false
      || cluster?.events.areWanted ?? false
  }

  private func publish(
    _ payload: [UInt8],
    of event: CommandEvent,
    on key: String?,
    _ responseTopic: String?
  ) {
    if let key {
      mqtt.publishEvent(payload, of: key, device: context.registry.device(of: event.key))
    }
    if let responseTopic {
      mqtt.reply(payload, on: responseTopic, correlationData: event.origin?.correlationData)
    }
  }

  /// Delivers an event of another member of the cluster to those who watch here.
  func deliverForeign(_ event: EventObject) {
    onEvent?(event)
    controlSocket?.sendToWatchers(event)
    http?.receiveForeign(event)
  }

  /// Tells clients that wait for the end of a command that another gateway drives its device now.
  func endWait(of origin: ChangeOrigin) {
    let message = "another gateway of the cluster drives the device now, and has the change"
    let failure = ControlReply.failure(ErrorReply(.unanswered, message), id: origin.id)
    guard let requester = requester(origin.replyTo) else {
      http?.endWait(origin.replyTo, failure)
      return
    }
    requester.send(failure)
    requester.endWait()
  }

  private func requester(_ number: UInt64) -> (any Requester)? {
    controlSocket?.connection(number) ?? cluster?.requesters[number]
  }

  /// Sends an event to the client of the control socket that requested the change, or to the member
  /// of the cluster that passed it on.
  private func answer(_ event: CommandEvent, key: String) {
    guard let origin = event.origin, origin.replyTo != 0,
      let requester = requester(origin.replyTo)
    else { return }
    if origin.wantsPhases || event.isAnswer {
      line.removeAll(keepingCapacity: true)
      context.encoder.append(event, key: key, to: &line)
      if event.isAnswer { ControlReply.addParts(origin.parts, to: &line) }
      requester.pass(line, isFinal: event.isFinal)
    }
    if event.isAnswer { requester.hasReplied() }
    if event.isFinal, origin.wantsPhases { requester.endWait() }
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
  /// Whether this is the one direct answer to the request: `accepted` or `rejected`, or the end of
  /// a step that waited for the device's state.
  var isAnswer: Bool {
    switch phase {
    case .accepted, .rejected: true
    case .superseded, .cancelled: value == nil
    case .unchanged, .sending, .sent, .confirmed, .failed, .expired: false
    }
  }
}
