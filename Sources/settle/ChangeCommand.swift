// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

/// A command that changes one property: `set`, `step`, `toggle`.
protocol ChangeCommand: GatewayCommand {
  var key: String { get set }
  var options: ChangeOptions { get set }
}

/// The options that all changes share.
struct ChangeOptions: Sendable {
  /// How far to follow the change.
  enum Wait: String, CaseIterable, ArgumentValue {
    case sent, confirmed
    /// `confirmed` where the property can confirm, otherwise `sent`: the meaning of a bare `--wait`.
    case best

    /// The words that can be typed.
    static let allCases: [Wait] = [.sent, .confirmed]
  }

  var wait: Wait?
  var now = false
  var ttl: Duration?
  var timeout: Duration?
  var id: String?
  var source = "cli"
}

extension ChangeCommand {
  /// The parameters of a change: the key, its other arguments, and the shared options.
  ///
  /// `keys` are the keys to offer in a shell.
  static func changeParameters(
    _ positional: [Parameter<Self>],
    keys: ParameterDescription.Completion = .keys
  ) -> [Parameter<Self>] {
    let key = Parameter<Self>.argument(
      "key",
      \.key,
      completion: keys,
      help: "device/property, such as desk-lamp/brightness."
    )
    let options: [Parameter<Self>] = [
      .option(
        "wait",
        \.options.wait,
        value: "sent|confirmed",
        alone: "best",
        completion: .words(["sent", "confirmed"]),
        help: "Show each phase and wait until the device confirms, or until the broker acknowledges"
          + " where nothing can confirm. --wait=sent waits for the broker only; --wait=confirmed"
          + " is an error where nothing can confirm."
      ),
      .flag("now", \.options.now, help: "Skip the quiet period."),
      .option(
        "ttl",
        \.options.ttl,
        value: "D",
        help: "How long the value may wait for an offline broker or device, such as 60s or 1h."
      ),
      .option(
        "timeout",
        \.options.timeout,
        value: "D",
        help: "Stop waiting after D, such as 5s, with exit code 75; the change stays in effect."
      ),
      .option("id", \.options.id, value: "ID", help: "The id of the change in all its events."),
      .option(
        "source",
        \.options.source,
        value: "NAME",
        help: "The source of the change in its events (default: cli)."
      ),
    ]
    return [key] + positional + options + connectionParameters
  }

  /// Sends the change and follows it until the phase that `--wait` names.
  func perform(_ operation: ControlRequest.Operation) throws(ClientError) -> ExitCode {
    var request = ControlRequest(operation, key: key)
    request.id = options.id
    request.source = options.source
    request.now = options.now
    request.ttl = options.ttl
    request.wait = options.wait.map { $0 == .sent ? .sent : .confirmed }
    var follower = ChangeFollower(request: request, options: options, json: connection.json)
    return try follower.run(on: connection.connect())
  }
}
