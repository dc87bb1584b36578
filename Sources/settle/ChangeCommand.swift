// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

/// A command that changes one property: `set`, `step`, `toggle`.
protocol ChangeCommand: GatewayCommand {
  var key: String { get set }
  var options: ChangeOptions { get set }
}

/// What every change takes.
struct ChangeOptions: Sendable {
  /// How far to follow the change.
  enum Wait: String, CaseIterable, ArgumentValue {
    case sent, confirmed
    /// `confirmed` where the property can confirm, else `sent`: what a bare `--wait` means.
    case best

    /// What may be typed.
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
  /// The rows of a change: the key, what else stands behind it, and the options they all share.
  static func changeParameters(_ positional: [Parameter<Self>]) -> [Parameter<Self>] {
    let key = Parameter<Self>.argument(
      "key",
      \.key,
      completion: .keys,
      help: "device/property, such as desk-lamp/brightness."
    )
    let options: [Parameter<Self>] = [
      .option(
        "wait",
        \.options.wait,
        value: "sent|confirmed",
        alone: "best",
        completion: .words(["sent", "confirmed"]),
        help: "Show each phase as it comes and wait for the device to confirm, where it can, else"
          + " for the broker to take it. --wait=sent waits for the broker only; --wait=confirmed"
          + " is an error where nothing can confirm."
      ),
      .flag("now", \.options.now, help: "Skip the quiet period."),
      .option(
        "ttl",
        \.options.ttl,
        value: "D",
        help: "How long the value may wait for an absent broker or device, such as 60s or 1h."
      ),
      .option(
        "timeout",
        \.options.timeout,
        value: "D",
        help: "Stop watching after D, such as 5s, with exit code 75; the change itself stays."
      ),
      .option("id", \.options.id, value: "ID", help: "Name the change in every event about it."),
      .option(
        "source",
        \.options.source,
        value: "NAME",
        help: "Say who asks (default: cli)."
      ),
    ]
    return [key] + positional + options + connectionParameters
  }

  /// Sends the change and follows it as far as `--wait` says.
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
