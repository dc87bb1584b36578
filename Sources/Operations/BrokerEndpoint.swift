// Settle
// SPDX-License-Identifier: Apache-2.0

/// The address of an MQTT broker.
package enum BrokerEndpoint: Hashable, Sendable, CustomStringConvertible {
  case tcp(host: String, port: Int)
  case tls(host: String, port: Int)
  case unix(path: String)

  /// The address as a URL.
  package var description: String {
    switch self {
    case .tcp(let host, let port): "mqtt://\(host):\(port)"
    case .tls(let host, let port): "mqtts://\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
