// Settle
// SPDX-License-Identifier: Apache-2.0

/// How to connect to an MQTT broker.
package struct BrokerConfiguration: Hashable, Sendable {
  package enum Endpoint: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case tls(host: String, port: Int)
    case unix(path: String)
  }
  package var endpoint: Endpoint = .tcp(host: "127.0.0.1", port: 1883)
  package var username: String?
  /// From a file, the environment or a credential of the service manager.
  package var password: String?
  /// Whether to use MQTT 5; otherwise 3.1.1.
  package var usesMQTT5 = true
  /// `nil` for one that is derived from host name and base topic.
  package var clientID: String?
  package var keepalive: Duration = .seconds(30)
  /// The path of a PEM file with certificate authorities; `nil` for the system's.
  package var ca: String?
  /// The path of the client certificate.
  package var certificate: String?
  /// The path of the client certificate's private key.
  package var key: String?
  /// Whether a password may travel unencrypted to a public host.
  package var allowPlaintext = false
  package init() {}
}
