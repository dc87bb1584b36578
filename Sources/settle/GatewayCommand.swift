// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

/// A command that asks the running gateway.
protocol GatewayCommand: Command {
  var connection: ConnectionOptions { get set }

  /// Asks and prints; what it throws is printed and ends the program.
  func run() throws(ClientError) -> ExitCode
}

/// What every command that asks the gateway takes.
struct ConnectionOptions: Sendable {
  /// How long a reply may take where nothing is waited for.
  static let replyTimeout = Duration.seconds(10)

  var socket: String?
  var json = false

  func connect() throws(ClientError) -> ControlClient {
    try ControlClient(path: SocketPath.find(named: socket))
  }
}

extension GatewayCommand {
  /// The rows that all these commands share.
  static var connectionParameters: [Parameter<Self>] {
    [
      .flag("json", \.connection.json, help: "Print JSON, one object per line."), socketParameter,
    ]
  }

  /// Where the gateway is.
  static var socketParameter: Parameter<Self> {
    .option(
      "socket",
      \.connection.socket,
      value: "PATH",
      completion: .files,
      help: "The gateway's control socket; else SETTLE_SOCKET, else the first that exists of"
        + " $XDG_RUNTIME_DIR/settle.sock and /run/settle/settle.sock."
    )
  }

  /// Sends one request and waits for its one reply; refusals are printed.
  func ask(_ request: ControlRequest) throws(ClientError) -> ControlReply {
    var client = try connection.connect()
    try client.send(request)
    return try client.next(by: Deadline(after: ConnectionOptions.replyTimeout))
  }
}

extension ExitCode {
  /// Prints a refusal of the gateway's and says what it is worth.
  static func refusal(_ error: ErrorReply) -> ExitCode {
    Terminal.complain(error.message)
    return switch ErrorCode(rawValue: error.code) {
    case .stopping: .unavailable
    case .limit: .failed
    case .badConfiguration: .badConfiguration
    case .syntax, .lineTooLong, .incompleteLine, .unknownMember, .misplacedMember,
      .missingOperation, .severalOperations, .missingKey, .badType, .badValue, .badKey,
      .unknownKey, .cannotConfirm, .unsupported, nil:
      .badInput
    }
  }

  /// Prints a reply that was not asked for.
  static func unexpected(_ reply: ControlReply) -> ExitCode {
    if case .failure(let error, _) = reply { return refusal(error) }
    Terminal.complain(#"unexpected answer: \#(String(decoding: reply.line, as: UTF8.self))"#)
    return .unavailable
  }
}
