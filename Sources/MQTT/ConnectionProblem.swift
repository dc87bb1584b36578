// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why there is no connection, in words fit for a log.
struct ConnectionProblem: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of problem, which decides what happens next.
  enum Kind: Hashable, Sendable {
    /// No connection was established.
    case unreachable
    /// The broker refused the connection; the operator must fix the cause.
    case refused
    /// The broker refused the connection for now.
    case unavailable
    /// An established connection was dropped by the peer or the network.
    case dropped
    /// The broker disconnected, such as at its shutdown.
    case ended
    /// Another client has taken over the client id.
    case takenOver
    /// A deadline of the client passed.
    case silent
  }

  static let closedByPeer = "the connection was closed by the other side"
  static let answersOlder = "the broker's answer to CONNECT is not that of MQTT 5"
  static let answersInHTTP = "the other side speaks HTTP, not MQTT; see the port in `url`"
  static let answersInTLS = "the other side speaks TLS at this port; use mqtts:// in `url`"

  let kind: Kind
  let reason: String
  /// What is wrong, for advice.
  let trouble: ConnectionTrouble

  var description: String { reason }

  /// Whether the next attempt waits for about a minute.
  var callsForSlowRetry: Bool { kind == .refused || kind == .takenOver }

  /// Whether the connection ends without an answer of the other side.
  var endsWithoutAnswer: Bool { kind == .unreachable || kind == .dropped }

  /// The other side neither accepted nor refused the connection in time.
  static func noConnection(within time: Duration) -> Self {
    Self(.silent, "no connection within \(time)")
  }

  /// The other side did not answer CONNECT in time.
  static func noAnswer(within time: Duration) -> Self {
    Self(.silent, "no answer to CONNECT within \(time); is this the port of a broker?")
  }

  /// A refused CONNECT.
  ///
  /// - Parameters:
  ///   - code: The CONNACK's code: of MQTT 5 from 0x80 on, of 3.1.1 below.
  ///   - sendsUsername: Whether this client sends a user name.
  init(connackCode code: Int32, sendsUsername: Bool) {
    let words = ReasonCode.words(code) + Self.advice(code, sendsUsername: sendsUsername)
    let lasting: [Int32] = [0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x90, 0x95, 0x99, 0x9A]
    let isFinal = code < 0x80 ? code != 3 : lasting.contains(code)
    self.init(
      isFinal ? .refused : .unavailable,
      "the broker refused the connection: \(words)",
      ConnectionTrouble(connackCode: code)
    )
  }

  /// The settings to look at, where the code is about who this client is.
  private static func advice(_ code: Int32, sendsUsername: Bool) -> String {
    switch code {
    case 4, 5, 0x86, 0x87:
      sendsUsername
        ? "; see `username` and `password_file`"
        : "; it may want a user name: set `username` and `password_file`"
    case 2, 0x85: "; see `client_id`"
    default: ""
    }
  }

  /// A DISCONNECT from the broker (MQTT 5).
  init(disconnectCode code: Int32) {
    let kind: Kind =
      switch code {
      case 0x8B, 0x89, 0x98, 0x9C, 0x9D, 0xA0: .ended
      case 0x8E: .takenOver
      case 0x8D: .silent
      case 0x87: .refused
      default: .dropped
      }
    self.init(kind, "the broker closed the connection: \(ReasonCode.words(code))")
  }

  /// - Parameters:
  ///   - kind: Which decides what happens next.
  ///   - reason: In words.
  ///   - trouble: What is wrong, where the kind does not say it.
  init(_ kind: Kind, _ reason: String, _ trouble: ConnectionTrouble? = nil) {
    self.kind = kind
    self.reason = reason
    self.trouble = trouble ?? ConnectionTrouble(kind)
  }
}

/// MQTT's reason codes in words.
enum ReasonCode {
  /// The meaning of a code of MQTT 5, or of a CONNACK of 3.1.1 (1 to 5), with its number.
  static func words(_ code: Int32) -> String {
    let number = "0x" + (code < 16 ? "0" : "") + String(code, radix: 16)
    guard let words = table[code] else { return "reason \(number)" }
    return "\(words) (\(number))"
  }

  static let qosNotSupported: Int32 = 0x9B

  private static let table: [Int32: String] = [
    1: "protocol version not supported", 2: "client id rejected", 3: "server unavailable",
    4: "bad user name or password", 5: "not authorized",
    0x80: "unspecified error", 0x81: "malformed packet", 0x82: "protocol error",
    0x83: "implementation specific error", 0x84: "protocol version not supported",
    0x85: "client id not valid", 0x86: "bad user name or password", 0x87: "not authorized",
    0x88: "server unavailable", 0x89: "server busy", 0x8A: "banned",
    0x8B: "server shutting down", 0x8C: "bad authentication method",
    0x8D: "keep-alive timeout", 0x8E: "another client has connected with the same client id",
    0x8F: "topic filter invalid", 0x90: "topic name invalid", 0x91: "packet identifier in use",
    0x92: "packet identifier not found", 0x93: "receive maximum exceeded",
    0x94: "topic alias invalid", 0x95: "packet too large", 0x96: "message rate too high",
    0x97: "quota exceeded", 0x98: "administrative action", 0x99: "payload format invalid",
    0x9A: "retained messages not supported", 0x9B: "quality of service not supported",
    0x9C: "use another server", 0x9D: "server moved", 0x9E: "shared subscriptions not supported",
    0x9F: "connection rate exceeded", 0xA0: "maximum connect time",
    0xA1: "subscription identifiers not supported", 0xA2: "wildcards not supported",
  ]
}

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
