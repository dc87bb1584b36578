// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Configuration
import GatewayCore
import JSON
import JSONParsing
import LastOut
import MQTT
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
    ofPartition receiving: Partition? = nil,
    at now: Moment
  ) -> Bool {
    guard payload.count <= announcementLimit,
      let outputs = context.core.outputs(fedBy: topic, broker: broker),
      context.core.forwardsAll(outputs)
    else { return false }
    return receive(topic, payload, message, from: broker, ofPartition: receiving, at: now)
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
    ofPartition receiving: Partition? = nil,
    at now: Moment
  ) -> Bool {
    guard hasRoutes else { return false }
    var outputs = context.core.outputs(fedBy: topic, broker: broker)
    if let found = outputs, found.isEmpty { return false }
    if let places = context.places {
      outputs = outputs?.filter { output in
        let route = context.configuration.routes[context.core.route(of: output)]
        let partition = places.partition(ofName: route.clusterName)
        return receiving.map { $0 == partition } ?? places.drives(partition)
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
