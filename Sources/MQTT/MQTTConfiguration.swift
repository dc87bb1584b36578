// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
package import Operations

/// The address of a broker, and the credentials and options of the connection.
package struct MQTTConfiguration: Hashable, Sendable {
  package enum ProtocolVersion: Hashable, Sendable { case v311, v5 }
  package struct Will: Hashable, Sendable {
    package var topic: String
    package var payload: [UInt8]
    package var qos: Int
    package var retain: Bool
    /// How long after the connection's end it is published, unless the session is resumed before
    /// (MQTT 5).
    package var delay: Duration = .zero
    package init(topic: String, payload: [UInt8], qos: Int = 1, retain: Bool = true) {
      self.topic = topic
      self.payload = payload
      self.qos = qos
      self.retain = retain
    }
  }
  package var endpoint: BrokerEndpoint
  /// Further brokers, tried in turn after the first.
  package var alternatives: [BrokerEndpoint] = []
  package var version: ProtocolVersion = .v5
  /// Whether a broker that does not speak MQTT 5 is used with 3.1.1.
  package var allowsOlderVersion = false
  package var clientID: String
  package var username: String?
  /// Never logged or described.
  package var password: String?
  package var caFile: String?
  package var certificateFile: String?
  package var keyFile: String?
  package var keepalive: Duration = .seconds(30)
  /// How long the broker keeps the session after a disconnect (MQTT 5); zero for a clean start each
  /// time.
  package var sessionExpiry: Duration = .zero
  package var will: Will?
  /// The largest payload accepted from the broker, in bytes.
  package var maximumPacket: Int = 1 << 20
  package var connectDeadline: Duration = .seconds(5)
  package var acknowledgementDeadline: Duration = .seconds(3)
  package var backoff: ClosedRange<Duration> = .milliseconds(250)...(.seconds(30))
  /// How long a topic is held back for which the broker drops the connection: at first, and at
  /// most.
  package var quarantine: ClosedRange<Duration> = .seconds(10)...(.seconds(600))
  /// The maximum number of unacknowledged publishes.
  package var window = 20

  package init(endpoint: BrokerEndpoint, clientID: String) {
    self.endpoint = endpoint
    self.clientID = clientID
  }
}

extension MQTTConfiguration {
  /// The options of an attempt.
  func attempt(at target: AddressRound.Target) -> MQTTConfiguration {
    var configuration = self
    configuration.endpoint = target.endpoint
    if target.isOlder { configuration.version = .v311 }
    return configuration
  }

  /// The brokers in words.
  package var brokers: String {
    ([endpoint] + alternatives).map(\.description).joined(separator: ", ")
  }

  /// Whether the connection uses TLS.
  package var isEncrypted: Bool { if case .tls = endpoint { true } else { false } }

  /// Whether the connection is TCP, with or without TLS.
  var isTCP: Bool { if case .unix = endpoint { false } else { true } }

  /// When to check the connection after `now`; `nil` without keep-alive.
  func nextKeepAlive(after now: Moment) -> Moment? {
    guard keepalive > .zero else { return nil }
    return now.advanced(by: max(.seconds(1), keepalive / 4))
  }

  /// The maximum number of bytes of an incomplete packet; above it the connection is closed.
  ///
  /// MQTT 5 brokers know ``maximumPacket``; a 3.1.1 broker may send any packet that it accepted.
  var largestUnfinished: Int {
    let known = maximumPacket + (1 << 18)
    return version == .v5 ? known : max(known, 16 << 20)
  }
}
