// Settle
// SPDX-License-Identifier: Apache-2.0

/// What keeps a client from being connected, as far as an operator can act on it.
package enum ConnectionTrouble: String, Hashable, Sendable, CaseIterable {
  /// Nothing listens there, or the network does not reach it.
  case unreachable
  /// The host's name has no address.
  case unresolved
  /// The broker wants other credentials.
  case credentials
  /// The broker does not speak this version of MQTT.
  case version
  /// The broker does not accept the client id.
  case clientID = "client_id"
  /// Another client uses the client id too.
  case takenOver = "taken_over"
  /// The broker's certificate is for another name.
  case certificateName = "certificate_name"
  /// TLS failed otherwise: the broker's certificate, this client's, or a file.
  case certificate
  /// The other side is no MQTT broker.
  case notMQTT = "not_mqtt"
  /// The other side closed the connection without an answer.
  case closed
  /// The other side does not answer.
  case silent
  /// The broker refused the connection for another reason.
  case refused
  /// The connection was lost.
  case dropped

  /// The trouble of a refused CONNECT.
  init(connackCode code: Int32) {
    self =
      switch code {
      case 4, 5, 0x86, 0x87, 0x8C: .credentials
      case 2, 0x85: .clientID
      case 1, 0x84: .version
      default: .refused
      }
  }

  /// The trouble where nothing more than the kind of a problem is known.
  init(_ kind: ConnectionProblem.Kind) {
    self =
      switch kind {
      case .unreachable: .unreachable
      case .refused, .unavailable: .refused
      case .dropped, .ended: .dropped
      case .takenOver: .takenOver
      case .silent: .silent
      }
  }
}
