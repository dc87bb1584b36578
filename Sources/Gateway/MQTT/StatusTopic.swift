// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import Routing

/// What other clients publish on `settle/status`.
///
/// Another gateway that ends leaves `offline` behind, which is wrong while this one is online.
struct StatusTopic {
  /// What a message asks for.
  enum Reaction {
    case nothing
    /// Publish `online` again; `count` as in ``LogPace``, `nil` if the log need not say so.
    case restore(count: UInt64?)
    /// Log that another gateway is online at this base topic.
    case another
  }

  /// When another gateway was last seen online; `nil` if never, or if it has ended.
  private(set) var otherGatewaySeenAt: Moment?
  /// Limits the log of restored statuses.
  private var pace = LogPace()

  /// Handles a status that this gateway may not have published.
  ///
  /// `connections` is how often the gateway's own broker was connected. With MQTT 5 a broker does
  /// not send this gateway's own status back to it.
  mutating func receive(
    _ payload: Span<UInt8>,
    isRetained: Bool,
    connections: Int,
    usesMQTT5: Bool,
    at now: Moment
  ) -> Reaction {
    if Bytes.areEqual(payload, Array("offline".utf8)) {
      // What was retained at the broker is replaced on each connection.
      guard !isRetained else { return .nothing }
      otherGatewaySeenAt = nil
      return .restore(count: pace.record(at: now))
    }
    guard Bytes.areEqual(payload, Array("online".utf8)) else { return .nothing }
    // What is retained after the first connection is this gateway's own status.
    guard isRetained ? connections == 1 : usesMQTT5 else { return .nothing }
    let isNew = otherGatewaySeenAt == nil
    otherGatewaySeenAt = now
    return isNew ? .another : .nothing
  }
}
