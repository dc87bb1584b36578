// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

struct CompletionsCommand: GatewayCommand {
  static let name = "completions"
  static let summary = "Print a script that lets the shell complete commands and keys."
  static let discussion = """
    The script asks this command for the keys and values of the running gateway. Other scripts may \
    do so too: --keys and --values print one word per line.
    """
  static let examples = [
    Example(
      "source <(settle completions bash)",
      "Enable completion in this shell; add the line to ~/.bashrc to keep it."
    ),
    Example(
      "settle completions fish > ~/.config/fish/completions/settle.fish",
      "Install it for every shell."
    ),
    Example("settle completions --keys step", "The keys that can be stepped."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "shell",
      { $0.shell = $1 },
      isOptional: true,
      completion: .words(Completions.Shell.allCases.map(\.rawValue)),
      help: "bash, zsh or fish."
    ),
    .option(
      "keys",
      { $0.keys = $1 },
      value: Keys.allCases.map(\.rawValue).joined(separator: "|"),
      completion: .words(Keys.allCases.map(\.rawValue)),
      help: "Print keys instead: any, those that can be stepped or toggled, what can be set,"
        + " which includes devices, the names of scenes, or areas as one word each; of more than 1,000"
        + " keys, DEVICE/ for each device."
    ),
    .option(
      "starting",
      { $0.start = $1 },
      value: "TEXT",
      help: "Print only the keys that start with TEXT."
    ),
    .option(
      "values",
      { $0.valuesOf = $1 },
      value: "KEY",
      help: "Print the values of KEY instead: on and off, or the words of a choice or an action;"
        + " of a device, NAME= for each property."
    ),
    socketParameter,
  ]

  /// Which keys to print.
  enum Keys: String, CaseIterable, ArgumentValue {
    case any, step, toggle, set
    /// The names of scenes.
    case scene
    /// Areas, each as one word.
    case area
  }

  var shell: Completions.Shell?
  var keys: Keys?
  var start = ""
  var valuesOf: String?
  var connection = ConnectionOptions()

  /// Prints what the script asks for.
  func run() throws(ClientError) -> ExitCode {
    // DEVICE/ stands for what follows NAME=VALUE of a device, and nothing follows a value.
    let isMore = valuesOf?.last == "/"
    let subject = isMore ? valuesOf.map { String($0.dropLast()) } : valuesOf
    if isMore, subject?.contains("/") == true { return .done }
    let reply = try ask(question(about: subject))
    let words: [String]
    switch reply {
    case .status(let report, _): words = report.devices.scenes.filter { $0.hasPrefix(start) }
    case .words(let offered, _): words = offered.filter { $0.hasPrefix(start) }
    case .described(let rows, _) where subject?.contains("/") == false:
      words = rows.filter { !$0.isReadOnly }
        .compactMap { $0.key.split(separator: "/").last.map { "\($0)=" } }
    case .described(let rows, _):
      words = rows.filter { !$0.isReadOnly }.flatMap { $0.kind.words }.filter(Self.needsNoQuotes)
    case .event, .watched, .recorded, .targets, .pending, .flushed, .cancelled, .reloaded, .logged,
      .devices, .previewed, .failure:
      return .unexpected(reply)
    }
    StandardOutput.show(words.map { $0 + "\n" }.joined())
    return .done
  }

  /// What to ask the gateway for the values of `subject`, or for keys.
  private func question(about subject: String?) -> ControlRequest {
    if let subject { return ControlRequest(.describe, key: subject) }
    // Scenes have no word there: the status names them.
    guard let completion = keys.flatMap({ ControlRequest.Completion(rawValue: $0.rawValue) }) else {
      return ControlRequest(.status, key: "")
    }
    var request = ControlRequest(
      .devices,
      key: completion == .area ? "*" : Self.devices(startingWith: start)
    )
    request.completion = completion
    return request
  }

  /// The pattern of the devices that have the keys.
  private static func devices(startingWith start: String) -> String {
    let device = start.prefix { $0 != "/" }
    return device.count < start.count ? String(device) : "\(device)*"
  }

  /// Whether every shell takes the word as it is.
  private static func needsNoQuotes(_ word: String) -> Bool {
    !word.isEmpty
      && word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-.+".contains($0)) }
  }
}

extension ValueKind {
  /// The values that are words.
  fileprivate var words: [String] {
    switch self {
    case .boolean: ["on", "off"]
    case .choice(let words), .action(let words): words
    case .number, .integer, .text, .color: []
    }
  }
}
