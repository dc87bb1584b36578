// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Gateway
import Glibc
import MQTT
import Operations

/// Finds out whether brokers answer, as a client of its own that publishes nothing.
final class BrokerReach {
  private let loop: EventLoop
  private var clients: [(name: String, client: MQTTClient)] = []
  private var undecided: Set<Int> = []

  /// - Throws: When the loop or the MQTT library cannot be set up.
  init(_ settings: GatewayConfiguration) throws(OperationsError) {
    loop = try EventLoop()
    try add("mqtt", settings.mqtt, settings.limits)
    for name in settings.brokers.keys.sorted() {
      if let broker = settings.brokers[name] { try add(name, broker, settings.limits) }
    }
  }

  private func add(
    _ name: String,
    _ broker: BrokerConfiguration,
    _ limits: Limits
  ) throws(OperationsError) {
    // Not the gateway's client id: it may be running.
    var broker = broker
    broker.clientID = "settle-status-\(getpid())-\(name)"
    let configuration = MQTTConfiguration(broker, fallbackID: "settle-status", limits: limits)
    let number = clients.count
    let client = try MQTTClient(
      configuration: configuration,
      loop: loop,
      log: Logger(level: .error)
    )
    client.onState = { [unowned self] in changed(number, to: $0) }
    clients.append((name, client))
    undecided.insert(number)
  }

  /// Connects to each broker, and returns what came of it; a silent one takes five seconds.
  func run() -> [StatusReport.Broker] {
    for (_, client) in clients { client.start() }
    if !undecided.isEmpty { loop.run() }
    return clients.map { name, client in
      var broker = StatusReport.Broker(name: name, url: client.endpoint, state: .waiting)
      if case .connected = client.state { broker.state = .connected }
      broker.address = client.address
      broker.trouble = client.trouble?.cause.rawValue
      broker.reason = client.trouble?.reason
      return broker
    }
  }

  private func changed(_ number: Int, to state: MQTTClient.State) {
    switch state {
    case .connected, .waiting: undecided.remove(number)
    case .idle, .connecting: return
    }
    if undecided.isEmpty { loop.stop() }
  }
}
