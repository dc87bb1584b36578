// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Values

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
    /// The keys are quiet and done, from any source.
    case settled
    /// `confirmed` where the property can confirm, otherwise `sent`: the meaning of a bare
    /// `--wait`.
    case best

    /// The words that can be typed.
    static let allCases: [Wait] = [.sent, .confirmed, .settled]
  }

  var wait: Wait?
  var now = false
  var ttl: Duration?
  var timeout: Duration?
  var id: String?
  var source: String?
  /// Whether to print the message that would be sent instead of sending it.
  var isDryRun = false
}

extension ChangeCommand {
  /// The parameters of a change: the key, its other arguments, and the shared options.
  ///
  /// `keys` are the keys to offer in a shell.
  static func changeParameters(
    _ positional: [Parameter<Self>],
    keys: ParameterDescription.Completion = .keys,
    keyName: String = "key",
    keyHelp: String = "device/property, such as desk-lamp/brightness."
  ) -> [Parameter<Self>] {
    let key = Parameter<Self>.argument(
      keyName,
      { $0.key = $1 },
      completion: keys,
      help: keyHelp
    )
    let options: [Parameter<Self>] = [
      .option(
        "wait",
        { $0.options.wait = $1 },
        value: "sent|confirmed|settled",
        alone: "best",
        completion: .words(["sent", "confirmed", "settled"]),
        help: "Show each phase and wait until the device confirms, or until the broker acknowledges"
          + " where nothing can confirm. --wait=sent waits for the broker only; --wait=confirmed"
          + " is an error where nothing can confirm; --wait=settled waits until the property is"
          + " quiet and its last command done, from any source."
      ),
      .flag("now", { $0.options.now = true }, help: "Skip the quiet period."),
      .flag(
        "dry-run",
        { $0.options.isDryRun = true },
        help: "Print the topic and the message that would be sent, and send nothing."
      ),
      .option(
        "ttl",
        { $0.options.ttl = $1 },
        value: "D",
        help: "How long the value may wait for an offline broker or device, such as 60s or 1h."
      ),
      .option(
        "timeout",
        { $0.options.timeout = $1 },
        value: "D",
        help: "Stop waiting after D, such as 5s, with exit code 75; the change stays in effect."
      ),
      .option(
        "id",
        { $0.options.id = $1 },
        value: "ID",
        help: "The id of the change in all its events."
      ),
      .option(
        "source",
        { $0.options.source = $1 },
        value: "NAME",
        help: "The source of the change in its events (default: cli)."
      ),
    ]
    return [key] + positional + options + connectionParameters
  }

  /// Sends the change of one property and follows it until the phase that `--wait` names.
  func performOne(_ operation: ControlRequest.Operation) throws(ClientError) -> ExitCode {
    guard key.contains("/") else { return try explainBareName(key) }
    return try perform(operation)
  }

  /// Sends the change and follows it until the phase that `--wait` names.
  func perform(_ operation: ControlRequest.Operation) throws(ClientError) -> ExitCode {
    var request = ControlRequest(operation, key: key)
    request.id = options.id
    request.source = options.source ?? "cli"
    request.now = options.now
    request.ttl = options.ttl
    if options.isDryRun { return try preview(request) }
    request.wait =
      switch options.wait {
      case nil, .settled: nil
      case .sent: .sent
      case .confirmed, .best: .confirmed
      }
    var follower = ChangeFollower(request: request, options: options, json: connection.json)
    return try follower.run(on: connection.connect())
  }

  /// Prints the messages that the change would be sent in.
  private func preview(_ request: ControlRequest) throws(ClientError) -> ExitCode {
    var request = request
    request.isDryRun = true
    let reply = try ask(request)
    guard case .previewed(let messages, _) = reply else { return .unexpected(reply) }
    for message in messages {
      if connection.json {
        StandardOutput.print(bytes: JSONWriter.bytes(message.json))
        continue
      }
      let text = "\(message.topic) \(message.payload)"
      StandardOutput.print(Terminal.isInteractive ? Excerpt.visible(text) : text)
      if let reason = message.reason { Terminal.complain("it would not be sent now: \(reason)") }
    }
    return .done
  }
}
