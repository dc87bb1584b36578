// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

extension MQTTClient {
  /// Identifies one publish to its owner: which part of it sent the message, and that part's own
  /// number.
  package struct Token: Hashable, Sendable {
    package var sender: UInt8
    package var number: UInt64

    package init(sender: UInt8 = 0, number: UInt64) {
      self.sender = sender
      self.number = number
    }
  }

  package enum State: Hashable, Sendable {
    /// Not started, or closed.
    case idle
    case connecting
    case connected(sessionPresent: Bool)
    /// Waiting before the next attempt; `reason` in words.
    case waiting(until: Moment, reason: String)
  }

  /// The outcome of a publish.
  package enum Outcome: Hashable, Sendable {
    /// Acknowledged (QoS 1, 2) or written to the socket (QoS 0).
    case acknowledged
    /// Refused by the broker or by the library; sending the same again is pointless.
    case refused(reason: String)
    /// The connection ended first; whether the broker received it is unknown.
    case lost
  }

  /// Counters since the client was created.
  package struct Statistics: Hashable, Sendable {
    package var attempts = 0
    package var connections = 0
    /// Connections that ended without ``MQTTClient/close()``.
    package var losses = 0
    package var published = 0
    package var refused = 0
    package var received = 0
    /// Retained messages ignored because no subscription delivers them.
    package var retainedIgnored = 0
    /// Messages larger than ``MQTTConfiguration/maximumPacket``.
    package var oversizedIgnored = 0
  }
}
