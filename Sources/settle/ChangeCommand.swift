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

struct StepCommand: ChangeCommand {
  static let name = "step"
  static let summary = "Add to a number; rapid steps add up and are sent as one value."
  static let discussion = """
    A step counts from the pending value, else from the value in flight, else from what the device \
    reported last, and stays within the property's range. N% is that part of the range, in whole \
    steps; where the unit is %, it is that number.
    """
  static let examples = [
    Example("settle step desk-lamp/brightness +10", "Increase the brightness by ten."),
    Example("settle step desk-lamp/brightness -10% --wait=settled", "A tenth of the range darker."),
    Example(
      "settle step boiler/target_temperature -0.5 --wait",
      "Lower the set-point by half a degree, and wait."
    ),
  ]
  static let parameters = changeParameters(
    [
      .argument(
        "n",
        { $0.amount = $1 },
        help: "The amount to add: 5, +5, -0.5, or +10% of the range."
      )
    ],
    keys: .keysOf("step")
  )

  var key = ""
  var amount = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    if let percentage = StepAmount(percentage: amount) {
      return try performOne(.step(percentage))
    }
    let number: Double
    do throws(ArgumentValueError) {
      number = try Double(argument: amount)
    } catch {
      Terminal.complain("N \(error.message)")
      return .badInput
    }
    return try performOne(.step(.number(number)))
  }
}

struct ToggleCommand: ChangeCommand {
  static let name = "toggle"
  static let summary = "Toggle a boolean property."
  static let examples = [
    Example("settle toggle desk-lamp/power", "Switch it on if it is off, and off if it is on."),
    Example("settle toggle desk-lamp/power --wait=sent", "Wait until the broker acknowledges it."),
  ]
  static let parameters = changeParameters([], keys: .keysOf("toggle"))

  var key = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode { try performOne(.toggle) }
}

struct SceneCommand: ChangeCommand {
  static let name = "scene"
  static let summary = "Set the values of a scene, all at one instant."
  static let discussion = """
    A scene is a named set of values in a device file. Each value is accepted or refused for \
    itself, and has an event of its own; the exit code is 0 if all went well.
    """
  static let examples = [
    Example("settle scene evening", "Set the scene."),
    Example("settle scene evening --wait", "Wait until every device has its value."),
    Example("settle scene evening --dry-run", "Print the messages, and send nothing."),
  ]
  static let parameters = changeParameters(
    [],
    keys: .keysOf("scene"),
    keyName: "name",
    keyHelp: "The name of the scene, such as evening."
  )

  var key = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    guard options.wait != .settled else {
      Terminal.complain("scene: --wait is sent or confirmed; settled is for one property")
      return .usage
    }
    return try perform(.scene)
  }
}
