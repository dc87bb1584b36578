// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments

/// `settle manual COMMAND` of a command that this program does.
struct ManualCommand: Command {
  static let name = "manual"
  static let summary = "Print the manual page of a command that settled does."
  static let examples = [
    Example("settle manual run | man -l -", "Read it."),
    Example("settle manual check > settle-check.1", "Keep it."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument("command", \.command, completion: .commands, help: "The command.")
  ]

  var command = ""
}

/// What `settle completions` prints behind its own script: the commands that this program does.
struct CompletionsCommand: Command {
  static let name = "completions"
  static let summary = "Print the part of the completion script that settled knows."
  static let examples = [
    Example("settle completions bash", "The whole script, this part at its end."),
    Example("settled completions bash --commands run,check", "This part alone, of two commands."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "shell",
      \.shell,
      completion: .words(Completions.Shell.allCases.map(\.rawValue)),
      help: "bash, zsh or fish."
    ),
    .option(
      "commands",
      \.commands,
      value: "A,B",
      completion: .commands,
      help: "The commands to complete, separated by commas."
    ),
  ]

  var shell = Completions.Shell.bash
  var commands = ""
}
