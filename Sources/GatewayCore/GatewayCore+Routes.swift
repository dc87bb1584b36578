// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
import Routing

/// Messages that are forwarded from topic to topic.
extension GatewayCore {
  /// Reads an announcement of groups; `false` if the message is none.
  package mutating func readAnnouncement(
    _ payload: Span<UInt8>,
    topic: Span<UInt8>,
    broker: Int
  ) -> Bool {
    routes.readAnnouncement(payload, topic: topic, broker: broker)
  }

  /// The outputs that a topic feeds, matched against the filters when the topic is first seen.
  ///
  /// - Returns: `nil` when a route matches, but the table of topics is full.
  package mutating func outputs(fedBy topic: Span<UInt8>, broker: Int) -> [KeyIndex]? {
    routes.outputs(fedBy: topic, broker: broker)
  }

  /// The number of the route that an output belongs to.
  package func route(of output: KeyIndex) -> Int { routes.route(of: output) }

  /// Whether a message for these outputs must be read as JSON.
  package func needsDocument(_ outputs: [KeyIndex]) -> Bool { routes.needsDocument(outputs) }

  /// Whether these are outputs of routes that forward everything, unchanged and at once.
  package func forwardsAll(_ outputs: [KeyIndex]) -> Bool { routes.forwardsAll(outputs) }

  /// Accepts a message for routes.
  ///
  /// `document` is the payload as JSON, where ``needsDocument(_:)`` says so; `keys` is
  /// what ``outputs(fedBy:broker:)`` returned; `trail` names the gateways that the
  /// message has passed, and `mark` this one.
  package mutating func route(
    _ payload: Span<UInt8>,
    document: JSONValue?,
    for keys: [KeyIndex]?,
    topic: Span<UInt8>,
    retained: Bool,
    trail: String,
    mark: String,
    at now: Moment
  ) {
    routes.advance(to: now)
    let rejection = routes.admit(
      payload,
      document: document,
      for: keys,
      retained: retained,
      trail: trail,
      mark: mark,
      isShuttingDown: isShuttingDown,
      at: now
    )
    switch rejection {
    case nil: break
    case .retained: rejectRetained(topic: Text.of(topic))
    case .returned(let to, let reason):
      outbox.log(rejections.recordReturned(topic: Text.of(topic), to: to, reason: reason))
    case .unread: outbox.log(rejections.recordUnread(topic: Text.of(topic), size: payload.count))
    case .other(let kind, let reason):
      reject(kind, topic: Text.of(topic), reason: reason, at: now)
    }
  }

  /// What became of ``Effect/forward(_:broker:)``; the number of a message that was answered before
  /// is ignored.
  package mutating func routeFinished(_ number: UInt64, _ outcome: PublishOutcome) {
    routes.finish(number, outcome)
  }

  /// Counts a message that is rejected, and logs it, at most once in ten seconds for each kind and
  /// topic.
  package mutating func reject(
    _ kind: RejectionLog.Kind,
    topic: String,
    reason: @autoclosure () -> String,
    at now: Moment
  ) {
    outbox.log(rejections.record(kind, topic: topic, reason: reason(), at: now))
  }

  /// Counts a retained message on a command or route topic, which is ignored.
  package mutating func rejectRetained(topic: String) {
    outbox.log(rejections.recordRetained(topic: topic))
  }
}

extension RouteMachine {
  /// Why a routed message is rejected, or what is wrong with it.
  enum Rejection: Hashable {
    /// It is retained, and so may be stale.
    case retained
    /// It was forwarded before and has come back; `to` is the topic that it was forwarded to, if it
    /// is known.
    case returned(to: String?, reason: String)
    /// It is accepted all the same, unchanged: no announcement that could be read.
    case unread
    case other(RejectionLog.Kind, reason: String)
  }

  /// Accepts a message, unless the gateway shuts down, the message was here before, or there is no
  /// room for it; `nil` when it is accepted or no route matches.
  mutating func admit(
    _ payload: Span<UInt8>,
    document: JSONValue?,
    for keys: [KeyIndex]?,
    retained: Bool,
    trail: String,
    mark: String,
    isShuttingDown: Bool,
    at now: Moment
  ) -> Rejection? {
    if isShuttingDown { return .other(.closing, reason: "shutting down") }
    if !trail.isEmpty, RouteTrail.loops(trail, through: mark) {
      let to = keys?.first.map { topic(of: $0) }
      return .returned(to: to, reason: "the message returned to this gateway")
    }
    let overflow = Rejection.other(.overflow, reason: "limits.pending is \(limit)")
    guard let keys else { return overflow }
    let verdict = receive(
      payload,
      document: document,
      for: keys,
      retained: retained,
      trail: trail,
      at: now
    )
    switch verdict {
    case .noRoute, .accepted: return nil
    case .acceptedUnread: return .unread
    case .retained: return .retained
    case .overflow: return overflow
    case .returned(let to):
      let reason = "the message returned to this gateway, by a bridge that joins both topics too"
      return .returned(to: to, reason: reason)
    }
  }
}
