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
  /// Further brokers, tried in turn after the first.
  package var alternatives: [Endpoint] = []
  package var username: String?
  /// From a file, the environment or a credential of the service manager.
  package var password: String?
  /// Whether to use MQTT 5; otherwise 3.1.1.
  package var usesMQTT5 = true
  /// Whether a broker that does not speak MQTT 5 is used with 3.1.1: the settings state no
  /// protocol.
  package var allowsOlderVersion = true
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

  package var endpoints: [Endpoint] { [endpoint] + alternatives }

  /// The addresses in the words of the settings.
  var urls: String { endpoints.map(\.description).joined(separator: ", ") }

  /// Takes the addresses in their order; without any, those so far stay.
  mutating func use(_ endpoints: [Endpoint]) {
    guard let first = endpoints.first else { return }
    endpoint = first
    alternatives = Array(endpoints.dropFirst())
  }

  /// Whether a connection may use TLS.
  var usesTLS: Bool {
    endpoints.contains { endpoint in
      if case .tls = endpoint { true } else { false }
    }
  }
}
