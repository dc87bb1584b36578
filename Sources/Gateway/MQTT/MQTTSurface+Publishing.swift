// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Devices
import GatewayCore
import JSON
import LastOut
import MQTT
import Operations
import Routing

/// Publishing what the core decided, and reporting what the broker answered.
extension MQTTSurface {
  /// What the brokers accept at the moment.
  var hostState: HostState {
    var state = HostState()
    for (number, link) in links.enumerated() where link.client.canPublish {
      state.room |= 1 << UInt64(number)
    }
    state.backlog = own.waitingCount
    state.isIdle = own.isIdle
    guard let sessions else { return state }
    if !sessions.hasRoom { state.room &= ~1 }
    guard context.core.isShuttingDown else { return state }  // Only the end asks for the rest.
    state.backlog += sessions.waitingCount
    state.isIdle = state.isIdle && sessions.isIdle
    return state
  }

  // MARK: - Commands and routed messages

  /// Publishes a command at the gateway's own broker.
  func publish(_ publish: CommandPublish, at now: Moment) {
    if let onCommand {
      onCommand(publish.topic, publish.payload, publish.keys.map { context.registry[$0].key })
    }
    // Before the outcome, which may be reported at once; at QoS 0 nothing is acknowledged.
    if publish.qos > 0 { acknowledgementLatency.published(publish.token, at: now) }
    let device = context.registry.device(of: publish.keys[0])
    let isAccepted =
      if let sessions {
        sessions.publish(publish, ofDevice: device)
      } else {
        own.client.publish(publish)
      }
    if !isAccepted {
      acknowledgementLatency.finished(publish.token, isAcknowledged: false, at: now)
      // Without a session nothing is sent to the device, and the command waits.
      if sessions != nil { context.core.sessionChanged(ofDevice: device, isUp: false, at: now) }
      context.core.commandFinished(publish.token, .lost, at: now)
    }
  }

  /// Publishes a routed message at a broker.
  func forward(_ publish: RouteMachine.Publish, to broker: Int) {
    if wills.hold(publish, to: broker) { return }
    let isAccepted = links[broker].client.publish(
      topic: publish.topic,
      payload: publish.payload,
      qos: publish.qos,
      retain: publish.retain,
      properties: topics.routeProperties(trail: publish.trail),
      token: BrokerLink.Sender.route.token(publish.number)
    )
    guard isAccepted else { return context.core.routeFinished(publish.number, .lost) }
    wills.forwarded(publish, to: broker)
  }

  /// Reports the outcome of a publish to the core, which decides what follows from it.
  func finish(
    _ token: MQTTClient.Token,
    _ outcome: PublishOutcome,
    on link: BrokerLink
  ) {
    let now = EventLoop.now()
    switch BrokerLink.Sender(rawValue: token.sender) {
    case .command:
      let isAcknowledged = outcome == .acknowledged
      acknowledgementLatency.finished(token.number, isAcknowledged: isAcknowledged, at: now)
      context.core.commandFinished(token.number, outcome, at: now)
    case .route:
      if case .refused(let reason) = outcome {
        context.log.warning("Broker refused a routed message", ["reason": reason])
      }
      context.core.routeFinished(token.number, outcome)
    case .own:
      if link === own { discovery?.acknowledged(token.number) }
      if case .refused(let reason) = outcome {
        context.log.warning("Broker refused a message about the gateway", ["reason": reason])
      }
      // The gateway's own topics are published again on the next connection; replies are kept.
      link.finish(token.number, isLost: outcome == .lost)
    case nil: preconditionFailure("A publish has one of three senders.")
    }
  }

  /// Asks a device for its state.
  func request(_ request: StateRequestMessage) {
    guard let link = link(ofDevice: request.device) else { return }
    let message = BrokerLink.Message(topic: request.topic, payload: request.payload)
    if !link.send(message) { link.enqueue(message) }
  }

  // MARK: - The gateway's own topics

  /// Publishes what waits for room: replies and events, then lamps and
  /// announcements.
  func publishWaiting() {
    sessions?.publishWaiting()
    guard own.isConnected else { return }
    own.sendMessages()
    publishLights()
    discovery?.publishWaiting()
  }

  /// Publishes a retained topic that shows where keys stand; `false` without room for it.
  func publishState(_ item: StatePublisher.Item, _ payload: [UInt8]) -> Bool {
    let registry = context.registry
    let topic: String
    let owner: Int
    switch item {
    case .target(let key):
      topic = topics.target(registry[key].key)
      owner = registry.device(of: key)
    case .targets(let device):
      topic = topics.target(registry.id(ofDevice: device))
      owner = device
    case .info(let device):
      topic = topics.info(registry.id(ofDevice: device))
      owner = device
    }
    // Another gateway of the cluster shows it.
    guard let link = link(ofDevice: owner) else { return true }
    guard publishRetained(payload, on: topic, link) else { return false }
    if let discovery {
      switch item {
      case .target: break
      case .targets(let device), .info(let device):
        context.lights.deviceChanged(device)
        discovery.commandsChanged(of: device)
      }
    }
    return true
  }

  /// Publishes a retained topic; a session of a cluster keeps what it has no room for.
  private func publishRetained(_ payload: [UInt8], on topic: String, _ link: BrokerLink) -> Bool {
    if link.publishRetained(payload, on: topic) { return true }
    guard sessions != nil else { return false }
    link.enqueue(.init(topic: topic, payload: payload, retain: true))
    return true
  }

  /// Publishes what lamps show in Home Assistant's schema, while there is room.
  private func publishLights() {
    while !context.lights.isEmpty, own.client.canPublish {
      let next = context.lights.next(in: context.registry) {
        context.core.status($0)
      }
      guard let next else { return }
      var payload: [UInt8] = []
      JSONWriter.append(next.state, to: &payload)
      let topic = topics.light(context.registry[next.main].key)
      let device = context.registry.device(of: next.main)
      guard let link = link(ofDevice: device) else { continue }
      guard publishRetained(payload, on: topic, link) else {
        return context.lights.putBack(next.main, in: context.registry)
      }
    }
  }

  /// Publishes an event on the topic of its key, once, to those who subscribe now.
  func publishEvent(_ payload: [UInt8], of key: String, device: Int? = nil) {
    let session = device.flatMap { self.link(ofDevice: $0) }
    (session ?? own).enqueue(.init(topic: topics.event(key), payload: payload, qos: 0))
  }

  /// Replies to the message that a change arrived in.
  ///
  /// A value of an earlier process may name a topic that is no longer allowed.
  func reply(_ payload: [UInt8], on topic: String, correlationData: [UInt8]?) {
    guard replyTopics.contains(topic), !topics.isCommandTopic(topic) else { return }
    own.enqueue(
      .init(topic: topic, payload: payload, correlationData: correlationData, isKept: true)
    )
  }

  /// Publishes `settle/status`, with a broken journal as a user property.
  func publishStatus() {
    guard isPublic, own.isConnected, !context.core.isShuttingDown else { return }
    var message = BrokerLink.Message(
      topic: topics.status,
      payload: Array("online".utf8),
      retain: true
    )
    if let fault = context.core.storeFault {
      message.userProperties[sessions == nil ? "journal" : "engine"] = "degraded: \(fault)"
    }
    guard let cluster = context.configuration.cluster else { return own.enqueue(message) }
    // The session of partition 0 has the will of the cluster's status.
    if context.places?.drives(Partition(0)) ?? false {
      sessions?[Partition(0)]?.link.enqueue(message)
    }
    message.topic = topics.status(of: cluster.member)
    own.enqueue(message)
  }

  /// Publishes `offline` on `settle/status`, behind everything that waits.
  func publishOffline() {
    guard isPublic else { return }
    var message = BrokerLink.Message(
      topic: topics.status,
      payload: Array("offline".utf8),
      retain: true
    )
    if let cluster = context.configuration.cluster {
      if isLastMember?() ?? false { own.enqueue(message) }
      message.topic = topics.status(of: cluster.member)
    }
    own.enqueue(message)
    own.sendMessages()
  }
}

/// Reads the payload of a state, availability or input topic: JSON, or a bare word.
enum StatePayload {
  /// The JSON value; a payload that is no JSON is a string.
  static func read(_ payload: Span<UInt8>) -> JSONValue {
    if let document = try? JSONParser.parse(payload) { return document }
    return .string(Text.of(payload))
  }

  /// The text of a scalar, without quotes.
  static func word(_ value: JSONValue) -> String {
    if case .string(let text) = value { text } else { JSONWriter.text(value) }
  }
}
