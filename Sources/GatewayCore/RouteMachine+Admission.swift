// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
import Routing

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
