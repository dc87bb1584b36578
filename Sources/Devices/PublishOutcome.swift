// Settle
// SPDX-License-Identifier: Apache-2.0

/// What became of a message for a broker.
package enum PublishOutcome: Hashable, Sendable {
  /// Acknowledged (QoS 1, 2) or written to the socket (QoS 0).
  case acknowledged
  /// Refused, for a reason in words; sending the same again is pointless.
  case refused(String)
  /// The connection ended first; whether the broker received it is unknown.
  case lost
}
