// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Operations

/// The commands that need more than a socket; `settle` executes this program for them.
@main
struct Settled {
  static func main() {
    // Before any password is read.
    CoreDumps.disable()
    program.main()
  }

  /// Named `settle`, as users type it.
  private static let program = Program(
    name: "settle",
    version: Release.description,
    summary: "The part of settle that runs the gateway and works without one.",
    discussion: "settle executes this program, settled, for these commands. Both accept the same"
      + " arguments.",
    examples: [
      Example("settle run --config settle.yaml", "Run the gateway."),
      Example(
        "settled run --config settle.yaml",
        "The same without settle in between."
      ),
    ],
    commands: [
      CommandEntry(RunCommand.self, section: "GATEWAY") { $0.run() },
      entry(CheckCommand.self, "GATEWAY"),
      entry(StatusCommand.self, "GATEWAY"),
      entry(InitCommand.self, "GATEWAY"),
      entry(ProfilesCommand.self, "GATEWAY"),
      entry(SchemaCommand.self, "GATEWAY"),
      entry(ImportCommand.self, "GATEWAY"),
      entry(PipeCommand.self, "CHANGE"),
      entry(ControlCommand.self, "LOOK"),
      entry(DemoCommand.self, "TRY"),
      entry(SimulateCommand.self, "TRY"),
      entry(AdviseCommand.self, "TRY"),
      CommandEntry(ManualCommand.self, section: "SHELL") { manual(of: $0.command) },
      CommandEntry(CompletionsCommand.self, section: "SHELL") { printPart($0) },
    ]
  )

  private static func manual(of name: String) -> ExitCode {
    do throws(UsageError) {
      let entry = try program.command(name, calledAs: "settle manual")
      return ManualPage.show(ManualPage.text(of: entry, in: program), help: program.help(of: entry))
    } catch {
      StandardError.write(error.description)
      return .usage
    }
  }

  /// Prints the part of a completion script for the commands that it names.
  private static func printPart(_ command: CompletionsCommand) -> ExitCode {
    let names = command.commands.split(separator: ",").map(String.init)
    let completions = Completions(for: program, asking: "settle completions")
    StandardOutput.show(completions.part(for: command.shell, of: names))
    return .done
  }

  private static func entry<Root: DaemonCommand>(
    _ type: Root.Type,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(type, section: section) { $0.run() }
  }
}
