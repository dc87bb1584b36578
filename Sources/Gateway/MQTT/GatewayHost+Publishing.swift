// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import GatewayCore
import LastOut
import MQTT
import Operations
import Routing

/// The connections to brokers, and what is handed to them.
extension GatewayHost {
  /// Makes the connections: the gateway's own broker first, then the further ones by name.
  func makeLinks(_ brokers: [String]) throws(OperationsError) {
    let base = configuration.baseTopic
    var own = MQTTConfiguration(
      configuration.mqtt,
      fallbackID: "settle-\(HostName.current)-\(base)",
      limits: configuration.limits
    )
    own.will = .init(topic: topics.status, payload: Array("offline".utf8))
    own.sessionExpiry = .seconds(30)
    try addLink(nil, own)
    for name in brokers {
      guard let broker = configuration.brokers[name] else { continue }
      try addLink(
        name,
        MQTTConfiguration(
          broker,
          fallbackID: "settle-\(HostName.current)-\(base)-\(name)",
          limits: configuration.limits
        )
      )
    }
    for (number, link) in links.enumerated() {
      link.client.subscribe(
        topics.subscriptions(forBroker: number == 0 ? nil : link.name, isOwn: number == 0)
      )
    }
  }

  private func addLink(_ name: String?, _ settings: MQTTConfiguration) throws(OperationsError) {
    let number = links.count
    let client = try MQTTClient(configuration: settings, loop: loop, log: log)
    let link = BrokerLink(name: name, client: client, log: log)
    // Set to nil when the gateway ends: a weak reference is looked up for every message.
    client.onState = { [unowned self] in connection(number, isIn: $0) }
    client.onOutcome = { [unowned self] in finished($0, $1) }
    client.onMessage = { [unowned self] topic, payload, message in
      received(topic, payload, message, from: number)
    }
    client.onRetainedIgnored = { [unowned self] topic in core.rejectRetained(topic: topic) }
    links.append(link)
  }

  private func connection(_ number: Int, isIn state: MQTTClient.State) {
    let isUp =
      switch state {
      case .connected: true
      case .idle, .connecting, .waiting: false
      }
    guard links[number].isConnected != isUp else { return }
    links[number].isConnected = isUp
    guard number == 0 else { return }
    core.connectionChanged(isUp: isUp, at: EventLoop.now())
    if isUp {
      connectionCount += 1
      links[0].endDropping()
      publishStatus()
      for request in topics.stateRequests {
        links[0].enqueue(.init(topic: request.topic, payload: request.payload))
      }
      announcements?.connected()
      announceAll()
    }
    http?.brokerConnectionChanged()
    onConnection?(isUp)
  }

  private func finished(_ token: MQTTClient.Token, _ outcome: MQTTClient.Outcome) {
    let now = EventLoop.now()
    switch BrokerLink.Sender(rawValue: token.sender) {
    case .command:
      tallies.answered(token.number, isAcknowledged: outcome == .acknowledged, at: now)
      core.commandFinished(token.number, outcome.ofCommand, at: now)
    case .route:
      if case .refused(let reason) = outcome {
        log.warning("Broker refused a routed message", ["reason": reason])
      }
      core.routeFinished(token.number, outcome.ofRoute)
    case .own:
      announcements?.landed(token.number)
      if case .refused(let reason) = outcome {
        log.warning("Broker refused a message about the gateway", ["reason": reason])
      }
      // The gateway's own topics are published again on the next connection; replies are kept.
      links[0].finished(token.number, isLost: outcome == .lost)
    case nil: preconditionFailure("A publish has one of three senders.")
    }
  }

  /// Hands a command to the gateway's own broker.
  func publish(_ publish: CommandStateMachine.Publish, at now: Moment) {
    var properties = PublishProperties()
    properties.expirySeconds = publish.expirySeconds
    if publish.isReplayed { properties.userProperties["replayed"] = "1" }
    onCommand?(publish.topic, publish.payload, publish.keys.map { registry[$0].key })
    // Before the outcome, which may come at once; at QoS 0 nothing is acknowledged.
    if publish.qos > 0 { tallies.sent(publish.token, at: now) }
    let isAccepted = links[0].client.publish(
      topic: publish.topic,
      payload: publish.payload,
      qos: publish.qos,
      retain: false,
      properties: properties,
      token: BrokerLink.Sender.command.token(publish.token)
    )
    if !isAccepted {
      tallies.answered(publish.token, isAcknowledged: false, at: now)
      core.commandFinished(publish.token, .lost, at: now)
    }
  }

  /// Hands a routed message to a broker.
  func forward(_ publish: RouteMachine.Publish, to broker: Int) {
    let isAccepted = links[broker].client.publish(
      topic: publish.topic,
      payload: publish.payload,
      qos: publish.qos,
      retain: publish.retain,
      properties: topics.routeProperties(trail: publish.trail),
      token: BrokerLink.Sender.route.token(publish.number)
    )
    if !isAccepted { core.routeFinished(publish.number, .lost) }
  }
}

extension MQTTClient.Outcome {
  fileprivate var ofCommand: CommandStateMachine.Outcome {
    switch self {
    case .acknowledged: .acknowledged
    case .refused(let reason): .refused(reason)
    case .lost: .lost
    }
  }

  fileprivate var ofRoute: RouteMachine.Outcome {
    switch self {
    case .acknowledged: .acknowledged
    case .refused: .refused
    case .lost: .lost
    }
  }
}
