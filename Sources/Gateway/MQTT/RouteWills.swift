// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import LastOut
import MQTT
import Operations
import Routing

/// Connections whose only purpose is a last will: what a route's output shows once the gateway is
/// gone.
///
/// A connection has one will, and the gateway's own is that of its status. These are never closed
/// in an orderly way, because a broker drops the will of a client that takes its leave.
final class RouteWills {
  private struct Output {
    /// The number of the route.
    let route: Int
    let topic: String
    let broker: Int
    let client: MQTTClient
  }

  private var outputs: [Output] = []
  /// What a route forwarded last, by output.
  private var shown: [[UInt8]?] = []
  /// What waits for the connection with the will of its output, by output.
  private var held: [RouteMachine.Publish?] = []
  /// Forwards a message that waited to a broker.
  var forward: ((RouteMachine.Publish, Int) -> Void)?

  init(_ context: GatewayContext) throws(OperationsError) {
    let configuration = context.configuration
    let names = configuration.brokers.keys.sorted()
    for (place, route) in configuration.routes.enumerated() {
      guard let will = route.will else { continue }
      let number = outputs.count
      let broker = route.to.broker.flatMap { configuration.brokers[$0] } ?? configuration.mqtt
      var settings = MQTTConfiguration(
        broker,
        fallbackID: configuration.standardClientID,
        limits: configuration.limits
      )
      settings.clientID += "-will-\(number + 1)"
      settings.will = .init(topic: route.to.topic, payload: Array(will.utf8), qos: route.qos)
      let client = try MQTTClient(configuration: settings, loop: context.loop, log: context.log)
      client.onState = { [unowned self] in
        switch $0 {
        case .connected:
          if !release(number) { publishAgain(number) }
        case .waiting: release(number)
        case .idle, .connecting: break
        }
      }
      outputs.append(
        Output(
          route: place,
          topic: route.to.topic,
          broker: route.to.broker.flatMap { names.firstIndex(of: $0) }.map { $0 + 1 } ?? 0,
          client: client
        )
      )
      shown.append(nil)
      held.append(nil)
    }
  }

  deinit {
    for output in outputs { output.client.onState = nil }
  }

  func start() {
    for output in outputs { output.client.start() }
  }

  /// Another gateway of a cluster forwards what a route shows, or this one does from now on.
  func setActive(_ isActive: Bool, route: Int) {
    for output in outputs where output.route == route {
      if isActive { output.client.start() } else { output.client.close() }
    }
  }

  /// Whether a message waits here while the connection with the will of its output is made.
  ///
  /// Otherwise a gateway that is killed in between would leave what the message says. A connection
  /// that cannot be made holds nothing back.
  func hold(_ publish: RouteMachine.Publish, to broker: Int) -> Bool {
    let number = outputs.firstIndex { $0.broker == broker && $0.topic == publish.topic }
    guard let number, outputs[number].client.state == .connecting else { return false }
    held[number] = publish
    return true
  }

  /// A route forwarded a message.
  func forwarded(_ publish: RouteMachine.Publish, to broker: Int) {
    for number in outputs.indices
    where outputs[number].broker == broker && outputs[number].topic == publish.topic {
      shown[number] = publish.payload
    }
  }

  /// Forwards the message that waits, and says whether there was one.
  @discardableResult
  private func release(_ number: Int) -> Bool {
    guard let publish = held[number] else { return false }
    held[number] = nil
    forward?(publish, outputs[number].broker)
    return true
  }

  /// The broker may have published the will of the connection before.
  private func publishAgain(_ number: Int) {
    guard let payload = shown[number] else { return }
    _ = outputs[number].client.publish(
      topic: outputs[number].topic,
      payload: payload,
      retain: true,
      token: BrokerLink.Sender.own.token(0)
    )
  }
}
