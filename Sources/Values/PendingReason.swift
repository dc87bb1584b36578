// Settle
// SPDX-License-Identifier: Apache-2.0

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
