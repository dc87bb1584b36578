// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments

struct CompletionsCommand: Command {
  static let name = "completions"
  static let summary = "Print a script that lets the shell complete commands and keys."
  static let examples = [
    Example(
      "source <(settle completions bash)",
      "Enable completion in this shell; add the line to ~/.bashrc to keep it."
    ),
    Example(
      "settle completions fish > ~/.config/fish/completions/settle.fish",
      "Install it for every shell."
    ),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "shell",
      \.shell,
      completion: .words(Completions.Shell.allCases.map(\.rawValue)),
      help: "bash, zsh or fish."
    )
  ]

  var shell = Completions.Shell.bash
}
