// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import LastOut
import MQTT
import Operations

/// What goes to the brokers, in this order: commands, routed messages, the gateway's own topics.
extension Gateway {
  /// Makes the connections: the gateway's own broker first, then the further ones by name.
  func makeLinks(_ brokers: [String]) throws(OperationsError) {
    let base = configuration.baseTopic
    var own = MQTTConfiguration(
      configuration.mqtt,
      fallbackID: "settle-\(HostName.current)-\(base)",
      limits: configuration.limits
    )
    own.will = .init(topic: surface.statusTopic, payload: Array("offline".utf8))
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
        surface.subscriptions(forBroker: number == 0 ? nil : link.name, isOwn: number == 0)
      )
    }
  }

  private func addLink(_ name: String?, _ settings: MQTTConfiguration) throws(OperationsError) {
    let number = links.count
    let client = try MQTTClient(configuration: settings, loop: loop, log: log)
    let link = BrokerLink(name: name, client: client, log: log)
    // All are taken back when the gateway ends: a weak reference is looked up for every message.
    client.onState = { [unowned self] in connection(number, isIn: $0) }
    client.onOutcome = { [unowned self] in finished($0, $1) }
    client.onMessage = { [unowned self] topic, payload, message in
      received(topic, payload, message, from: number)
    }
    client.onRetainedIgnored = { [unowned self] topic in ignoredRetained(topic, from: number) }
    links.append(link)
  }

  private func connection(_ number: Int, isIn state: MQTTClient.State) {
    let isUp: Bool
    switch state {
    case .connected: isUp = true
    case .idle, .connecting, .waiting: isUp = false
    }
    guard links[number].isConnected != isUp else { return }
    links[number].isConnected = isUp
    guard number == 0 else { return }
    machine.connection(isUp: isUp, at: EventLoop.now())
    if isUp {
      connectionCount += 1
      links[0].endDropping()
      links[0].enqueue(statusMessage)
      for request in surface.stateRequests {
        links[0].enqueue(.init(topic: request.topic, payload: request.payload))
      }
      echo.forget()
      announcements?.connected()
      announceAll()
    }
    http?.brokerCameOrWent()
    onConnection?(isUp)
  }

  private func finished(_ token: UInt64, _ outcome: MQTTClient.Outcome) {
    let bare = BrokerLink.bare(token)
    if BrokerLink.sender(of: token) == .own { announcements?.landed(bare) }
    if BrokerLink.sender(of: token) == .command {
      tallies.landed(bare, isAcknowledged: outcome == .acknowledged, at: EventLoop.now())
    }
    switch (BrokerLink.sender(of: token), outcome) {
    case (.command, .acknowledged): machine.finish(bare, .acknowledged, at: EventLoop.now())
    case (.command, .refused(let reason)):
      machine.finish(bare, .refused(reason), at: EventLoop.now())
    case (.command, .lost): machine.finish(bare, .lost, at: EventLoop.now())
    case (.route, .acknowledged): routes.finish(bare, .acknowledged)
    case (.route, .refused(let reason)):
      routes.finish(bare, .refused)
      log.warning("Broker refused a routed message", ["reason": reason])
    case (.route, .lost): routes.finish(bare, .lost)
    // The gateway's own topics are all told anew on the next connection; answers are kept.
    case (.own, .refused(let reason)):
      links[0].finished(bare, isLost: false)
      log.warning("Broker refused a message about the gateway", ["reason": reason])
    case (.own, .acknowledged): links[0].finished(bare, isLost: false)
    case (.own, .lost): links[0].finished(bare, isLost: true)
    case (nil, _): break
    }
  }

  /// Hands commands and routed messages to the brokers while there is room.
  func publish(at now: Moment) {
    let link = links[0]
    while link.client.canPublish, let publish = machine.nextPublish(at: now) {
      var properties = PublishProperties()
      properties.expirySeconds = publish.expirySeconds
      if publish.isReplayed { properties.userProperties["replayed"] = "1" }
      onCommand?(
        publish.topic,
        publish.payload,
        publish.keys.map { registry.properties[Int($0.rawValue)].key }
      )
      // Before the outcome, which may come at once; at QoS 0 nobody acknowledges anything.
      if publish.qos > 0 { tallies.left(publish.token, at: now) }
      let isTaken = link.client.publish(
        topic: publish.topic,
        payload: publish.payload,
        qos: publish.qos,
        retain: false,
        properties: properties,
        token: BrokerLink.token(publish.token, of: .command)
      )
      if !isTaken {
        tallies.landed(publish.token, isAcknowledged: false, at: now)
        machine.finish(publish.token, .lost, at: now)
      }
    }
    guard !configuration.routes.isEmpty else { return }
    for number in links.indices { publishRoutes(to: number, at: now) }
  }

  private func publishRoutes(to number: Int, at now: Moment) {
    let client = links[number].client
    while client.canPublish {
      let publishes = routes.nextPublishes(for: number, room: 1, at: now)
      guard let publish = publishes.first else { return }
      let isTaken = client.publish(
        topic: publish.topic,
        payload: publish.payload,
        qos: publish.qos,
        retain: publish.retain,
        properties: surface.routeProperties(trail: publish.trail),
        token: BrokerLink.token(publish.token, of: .route)
      )
      if !isTaken { routes.finish(publish.token, .lost) }
    }
  }

  /// Tells events and answers, then shows targets, while there is room.
  func publishOwn(at now: Moment) {
    guard isConnected else { return }
    links[0].sendMessages()
    if showTargets(at: now) { publishAnnouncements() }
  }
}
