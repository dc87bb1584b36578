// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Configuration
import GatewayCore
import JSON
import LastOut
import MQTT
import Operations
import Routing

/// Messages that routes forward: which are handed to the core, and how large they may be.
struct RouteMessages {
  private let context: GatewayContext
  private let hasRoutes: Bool
  /// The largest payload that a route without a policy forwards, or that announces groups, in
  /// bytes.
  let announcementLimit: Int
  /// How messages that this gateway has forwarded name it.
  private let mark: String

  init(_ context: GatewayContext, mark: String) {
    self.context = context
    self.mark = mark
    let configuration = context.configuration
    hasRoutes = !configuration.routes.isEmpty
    announcementLimit = Self.announcementLimit(configuration)
  }

  static func announcementLimit(_ configuration: GatewayConfiguration) -> Int {
    let forwards = configuration.routes.contains { $0.policy == nil }
    let readsGroups = !RouteGroups.sources(of: configuration.routes).isEmpty
    return forwards || readsGroups ? configuration.limits.announcement : 0
  }

  /// Hands an announcement of groups to the core; `false` for any other message.
  func readAnnouncement(_ topic: Span<UInt8>, _ payload: Span<UInt8>, from broker: Int) -> Bool {
    hasRoutes && context.core.readAnnouncement(payload, topic: topic, broker: broker)
  }

  /// Hands a message above the usual size to routes that forward everything; `false` when it is
  /// above their limit too, or does not only match such routes.
  func forward(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int,
    at now: Moment
  ) -> Bool {
    guard payload.count <= announcementLimit,
      let outputs = context.core.outputs(fedBy: topic, broker: broker),
      context.core.forwardsAll(outputs)
    else { return false }
    return receive(topic, payload, message, from: broker, at: now)
  }

  /// Hands a message to the routes that match its topic; `false` when none does.
  ///
  /// In a cluster to those of the partition whose session has received it, or of any that this
  /// member drives.
  func receive(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int,
    at now: Moment
  ) -> Bool {
    guard hasRoutes else { return false }
    var outputs = context.core.outputs(fedBy: topic, broker: broker)
    if let found = outputs, found.isEmpty { return false }
    if let places = context.places {
      outputs = outputs?.filter { output in
        let route = context.configuration.routes[context.core.route(of: output)]
        let partition = places.partition(ofName: route.clusterName)
        return context.receivingPartition.map { $0 == partition } ?? places.drives(partition)
      }
      if outputs?.isEmpty ?? false { return true }
    }
    // A large payload is not read: it would take too much of a turn.
    let needsDocument =
      payload.count <= context.configuration.limits.payload
      && outputs.map { context.core.needsDocument($0) } ?? false
    context.core.route(
      payload,
      document: needsDocument ? try? JSONParser.parse(payload) : nil,
      for: outputs,
      topic: topic,
      retained: message.flags.retained,
      trail: message.userProperty(TopicMap.routeMark) ?? "",
      mark: mark,
      at: now
    )
    return true
  }
}

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
    /// What the route forwarded last.
    var shown: [UInt8]?
    /// What waits for the connection.
    var held: RouteMachine.Publish?
  }

  private var outputs: [Output] = []
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
    outputs[number].held = publish
    return true
  }

  /// A route forwarded a message.
  func forwarded(_ publish: RouteMachine.Publish, to broker: Int) {
    for number in outputs.indices
    where outputs[number].broker == broker && outputs[number].topic == publish.topic {
      outputs[number].shown = publish.payload
    }
  }

  /// Forwards the message that waits, and says whether there was one.
  @discardableResult
  private func release(_ number: Int) -> Bool {
    guard let publish = outputs[number].held.take() else { return false }
    forward?(publish, outputs[number].broker)
    return true
  }

  /// The broker may have published the will of the connection before.
  private func publishAgain(_ number: Int) {
    guard let payload = outputs[number].shown else { return }
    _ = outputs[number].client.publish(
      topic: outputs[number].topic,
      payload: payload,
      retain: true,
      token: BrokerLink.Sender.own.token(0)
    )
  }
}
