// Settle
// SPDX-License-Identifier: Apache-2.0

/// The phase of a command's life cycle.
package enum Phase: String, Hashable, Sendable, CaseIterable {
  /// In the queue.
  case accepted
  /// Replaced by a newer value or by a change made at the device.
  case superseded
  /// The device already has the value; nothing was sent.
  case unchanged
  /// Removed before it was confirmed, by a request or by an urgent value.
  case cancelled
  /// Not accepted: the value or the key is invalid, or there is no room.
  case rejected
  /// Handed to MQTT.
  case sending
  /// Acknowledged by the broker (QoS 1 and 2) or handed to it (QoS 0).
  case sent
  /// The device reported the value.
  case confirmed
  /// Not confirmed after all retries, or refused by the broker.
  case failed
  /// Waited longer than its `ttl` for an offline broker or device.
  case expired

  /// Whether no further phase follows.
  ///
  /// `canConfirm` states whether the property has a state topic that confirms commands.
  package func isFinal(canConfirm: Bool) -> Bool {
    switch self {
    case .accepted, .sending: false
    case .sent: !canConfirm
    case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
    }
  }
}

/// What a value waits for that is not sent yet.
package enum PendingReason: String, Hashable, Sendable {
  /// The end of its quiet period.
  case quiet
  /// A token of its lane, or its turn.
  case lane
  /// The broker's acknowledgement of the key's previous command.
  case inFlight = "in_flight"
  /// The broker or the device.
  case offline
  /// What the broker retains of the device: whether it is online is not known yet.
  case unknown
  /// The next report of a device that sleeps.
  case asleep
}
