// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments

/// The commands that need more than a socket; `settle` executes this program for them.
@main
struct Settled {
  static func main() { program.main() }

  /// Named as people type it.
  private static let program = Program(
    name: "settle",
    version: Release.version,
    summary: "The part of settle that runs the gateway and works without one.",
    commands: [
      CommandEntry(RunCommand.self, section: "GATEWAY") { $0.run() },
      entry(CheckCommand.self, "GATEWAY"),
      entry(ImportCommand.self, "GATEWAY"),
      entry(PipeCommand.self, "CHANGE"),
      entry(DemoCommand.self, "TRY"),
      entry(SimulateCommand.self, "TRY"),
      CommandEntry(passing: "manual", summary: "Print a manual page.", section: "SHELL") {
        manual(of: $0.first ?? "")
      },
    ]
  )

  private static func manual(of name: String) -> ExitCode {
    guard let entry = program.commands.first(where: { $0.name == name }) else { return .usage }
    StandardOutput.show(ManualPage.text(of: entry, in: program))
    return .done
  }

  private static func entry<Root: DaemonCommand>(
    _ type: Root.Type,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(type, section: section) { $0.run() }
  }
}
