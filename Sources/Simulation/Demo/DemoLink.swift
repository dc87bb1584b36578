// Settle
// SPDX-License-Identifier: Apache-2.0

import MQTT
package import Operations

/// A connection to the demo's broker that queues what it cannot send immediately.
package final class DemoLink {
  private struct Outgoing {
    var topic: String
    var payload: [UInt8]
    var retain: Bool
  }

  /// Called for each message.
  package var onMessage: ((_ topic: String, _ payload: [UInt8]) -> Void)?
  /// Called once, when the broker has accepted the connection.
  package var onConnected: (() -> Void)?

  private let client: MQTTClient
  private var waiting: [Outgoing] = []
  private var lastToken: UInt64 = 0
  /// A publish may call back before it returns.
  private var isDraining = false

  /// Creates a connection to a broker on loopback, which ``start(subscribing:)`` opens.
  package init(name: String, port: Int, loop: EventLoop) throws(OperationsError) {
    var configuration = MQTTConfiguration(
      endpoint: .tcp(host: "127.0.0.1", port: port),
      clientID: "settle-demo-\(name)"
    )
    configuration.window = 1000
    client = try MQTTClient(configuration: configuration, loop: loop, log: .silent)
    client.onMessage = { [weak self] topic, payload, _ in
      guard let self, let onMessage else { return }
      let name = topic.indices.map { topic[$0] }
      onMessage(String(decoding: name, as: UTF8.self), payload.indices.map { payload[$0] })
    }
    client.onReady = { [weak self] in self?.drain() }
    client.onState = { [weak self] state in
      guard let self, case .connected = state else { return }
      onConnected?()
      onConnected = nil
      drain()
    }
  }

  package func start(subscribing filters: [String] = []) {
    client.subscribe(
      filters.map { Subscription(filter: $0, qos: 1, wantsRetained: false) }
    )
    client.start()
  }

  package func publish(_ topic: String, _ payload: [UInt8], retain: Bool = false) {
    waiting.append(Outgoing(topic: topic, payload: payload, retain: retain))
    drain()
  }

  private func drain() {
    guard !isDraining else { return }
    isDraining = true
    defer { isDraining = false }
    var sent = 0
    for message in waiting {
      guard client.canPublish else { break }
      lastToken += 1
      guard
        client.publish(
          topic: message.topic,
          payload: message.payload,
          qos: 0,
          retain: message.retain,
          token: MQTTClient.Token(number: lastToken)
        )
      else { break }
      sent += 1
    }
    waiting.removeFirst(sent)
  }
}
