// Settle
// SPDX-License-Identifier: Apache-2.0

package struct BrokerConfiguration: Hashable, Sendable {
  package enum Endpoint: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case tls(host: String, port: Int)
    case unix(path: String)
  }
  package var endpoint: Endpoint = .tcp(host: "127.0.0.1", port: 1883)
  package var username: String?
  /// Read from file, environment or credential.
  package var password: String?
  package var usesMQTT5 = true
  /// `nil`: made from host name and base topic.
  package var clientID: String?
  package var keepalive: Duration = .seconds(30)
  package var ca: String?
  package var certificate: String?
  package var key: String?
  package var allowPlaintext = false
  package init() {}
}
