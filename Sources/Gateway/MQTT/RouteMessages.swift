// Settle
// SPDX-License-Identifier: Apache-2.0

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
  /// The largest payload that a route without a policy forwards, in bytes.
  let announcementLimit: Int
  /// How messages that this gateway has forwarded name it.
  private let mark: String

  init(_ context: GatewayContext, mark: String) {
    self.context = context
    self.mark = mark
    let configuration = context.configuration
    hasRoutes = !configuration.routes.isEmpty
    let forwards = configuration.routes.contains { $0.policy == nil }
    announcementLimit = forwards ? configuration.limits.announcement : 0
  }

  /// Hands a message above the usual size to routes that forward everything; `false` when it is above
  /// their limit too, or does not only match such routes.
  func forward(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int,
    at now: Moment
  ) -> Bool {
    guard payload.count <= announcementLimit,
      let outputs = context.core.routes.outputs(fedBy: topic, broker: broker),
      context.core.routes.forwardsAll(outputs)
    else { return false }
    return receive(topic, payload, message, from: broker, at: now)
  }

  /// Hands a message to the routes that match its topic; `false` when none does.
  func receive(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int,
    at now: Moment
  ) -> Bool {
    guard hasRoutes else { return false }
    let outputs = context.core.routes.outputs(fedBy: topic, broker: broker)
    if let outputs, outputs.isEmpty { return false }
    // A large payload is not read: it would take too much of a turn.
    let needsDocument =
      payload.count <= context.configuration.limits.payload
      && outputs.map { context.core.routes.needsDocument($0) } ?? false
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
