// Settle
// SPDX-License-Identifier: Apache-2.0

/// Where a command stands in its life cycle.
package enum Phase: String, Hashable, Sendable, CaseIterable {
  /// In the queue.
  case accepted
  /// A newer value took its place, or someone changed the device by hand.
  case superseded
  /// The device shows the value already; nothing was sent.
  case unchanged
  case cancelled
  case rejected
  /// Handed to MQTT.
  case sending
  /// The broker acknowledged it (QoS 1, 2) or took it (QoS 0).
  case sent
  /// The device reported the value.
  case confirmed
  /// Not confirmed after the retries, or refused by the broker.
  case failed
  /// Waited longer than its `ttl` for an absent broker or device.
  case expired

  /// Whether nothing follows, for a property that can confirm or not.
  package func isFinal(canConfirm: Bool) -> Bool {
    switch self {
    case .accepted, .sending: false
    case .sent: !canConfirm
    case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
    }
  }
}
