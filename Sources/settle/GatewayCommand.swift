// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON

/// A command that talks to the running gateway.
protocol GatewayCommand: Command {
  var connection: ConnectionOptions { get set }

  /// Sends the request and prints the reply; a thrown error is printed and ends the program.
  func run() throws(ClientError) -> ExitCode
}

/// The options of every command that talks to the gateway.
struct ConnectionOptions: Sendable {
  /// How long a reply may take when the request does not wait for a phase.
  static let replyTimeout = Duration.seconds(10)

  var socket: String?
  var json = false

  func connect() throws(ClientError) -> ControlClient {
    try ControlClient(path: SocketPath.find(named: socket))
  }
}

extension GatewayCommand {
  /// The parameters that all these commands share.
  static var connectionParameters: [Parameter<Self>] {
    [
      .flag("json", { $0.connection.json = true }, help: "Print JSON, one object per line."),
      socketParameter,
    ]
  }

  /// The `--socket` option.
  static var socketParameter: Parameter<Self> {
    .option(
      "socket",
      { $0.connection.socket = $1 },
      value: "PATH",
      completion: .files,
      help: SocketPath.help
    )
  }

  /// Sends one request and waits for its one reply; refusals are printed.
  func ask(_ request: ControlRequest) throws(ClientError) -> ControlReply {
    var client = try connection.connect()
    return try client.ask(request)
  }

  /// Prints rows: one object per line with `--json`, otherwise the table.
  func show(_ objects: [JSONValue], or table: TextTable) {
    guard connection.json else { return table.print() }
    for object in objects { StandardOutput.print(bytes: JSONWriter.bytes(object)) }
  }
}

extension ControlClient {
  /// Sends one request and waits for the next reply.
  mutating func ask(_ request: ControlRequest) throws(ClientError) -> ControlReply {
    try send(request)
    return try next(by: Deadline(after: ConnectionOptions.replyTimeout))
  }
}

extension ExitCode {
  /// Prints an error of the gateway and returns its exit code.
  static func refusal(_ error: ErrorReply) -> ExitCode {
    Terminal.complain(error.message)
    return code(of: error)
  }

  /// The exit code of an error of the gateway.
  static func code(of error: ErrorReply) -> ExitCode {
    switch ErrorCode(rawValue: error.code) {
    case .stopping, .noOwner: .unavailable
    case .limit, .unanswered: .failed
    case .badConfiguration: .badConfiguration
    case .syntax, .lineTooLong, .incompleteLine, .unknownMember, .misplacedMember,
      .missingOperation, .severalOperations, .missingKey, .badType, .badValue, .badKey,
      .unknownKey, .cannotConfirm, .unsupported, nil:
      .badInput
    }
  }

  /// Prints a reply that does not match the request.
  static func unexpected(_ reply: ControlReply) -> ExitCode {
    if case .failure(let error, _) = reply { return refusal(error) }
    Terminal.complain(#"unexpected reply: \#(String(decoding: reply.line, as: UTF8.self))"#)
    return .unavailable
  }
}
