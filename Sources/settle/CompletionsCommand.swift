// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices

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
      \.shell,
      isOptional: true,
      completion: .words(Completions.Shell.allCases.map(\.rawValue)),
      help: "bash, zsh or fish."
    ),
    .option(
      "keys",
      \.keys,
      value: Keys.allCases.map(\.rawValue).joined(separator: "|"),
      completion: .words(Keys.allCases.map(\.rawValue)),
      help: "Print keys instead: any, or those that can be stepped or toggled."
    ),
    .option(
      "values",
      \.valuesOf,
      value: "KEY",
      help: "Print the values of KEY instead: on and off, or the words of a choice or an action."
    ),
    socketParameter,
  ]

  /// Which keys to print.
  enum Keys: String, CaseIterable, ArgumentValue {
    case any, step, toggle
  }

  var shell: Completions.Shell?
  var keys: Keys?
  var valuesOf: String?
  var connection = ConnectionOptions()

  /// Prints what the script asks for.
  func run() throws(ClientError) -> ExitCode {
    let areAll = valuesOf == nil && keys == .any
    let reply = try ask(ControlRequest(areAll ? .get : .describe, key: valuesOf ?? "*"))
    let words: [String]
    switch reply {
    case .targets(let rows, _): words = rows.map(\.key)
    case .described(let rows, _) where valuesOf != nil:
      words = rows.flatMap { $0.kind.words }.filter(Self.needsNoQuotes)
    case .described(let rows, _):
      words = rows.filter { keys?.accepts($0.kind) ?? false }.map(\.key)
    case .event, .watched, .recorded, .pending, .flushed, .cancelled, .reloaded, .failure:
      return .unexpected(reply)
    }
    StandardOutput.show(words.map { $0 + "\n" }.joined())
    return .done
  }

  /// Whether every shell takes the word as it is.
  private static func needsNoQuotes(_ word: String) -> Bool {
    !word.isEmpty
      && word.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
          UInt8(ascii: "."), UInt8(ascii: "+"):
          true
        default: false
        }
      }
  }
}

extension CompletionsCommand.Keys {
  /// Whether the command accepts keys of this kind.
  fileprivate func accepts(_ kind: ValueKind) -> Bool {
    switch self {
    case .any: true
    case .step: kind.numberRule != nil
    case .toggle: kind == .boolean
    }
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
