// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments

/// `settle manual COMMAND` for a command that this program runs.
struct ManualCommand: Command {
  static let name = "manual"
  static let summary = "Show the manual page of a command that settled runs."
  static let examples = [
    Example("settle manual run", "Read a page without installing it."),
    Example("settle manual check > settle-check.1", "Write the page to a file."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument("command", { $0.command = $1 }, completion: .commands, help: "The command.")
  ]

  var command = ""
}

/// The part of `settle completions` for the commands that this program runs.
struct CompletionsCommand: Command {
  static let name = "completions"
  static let summary = "Print settled's part of the completion script."
  static let examples = [
    Example("settle completions bash", "The whole script, this part at its end."),
    Example("settled completions bash --commands run,check", "This part alone, of two commands."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "shell",
      { $0.shell = $1 },
      completion: .words(Completions.Shell.allCases.map(\.rawValue)),
      help: "bash, zsh or fish."
    ),
    .option(
      "commands",
      { $0.commands = $1 },
      value: "A,B",
      completion: .commands,
      help: "The commands to complete, separated by commas."
    ),
  ]

  var shell = Completions.Shell.bash
  var commands = ""
}
