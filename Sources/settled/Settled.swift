// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc

/// The commands that need more than a socket; `settle` executes this program for them.
@main
struct Settled {
  static let version = "0.1.0"

  static func main() {
    exit(run(Array(CommandLine.arguments.dropFirst())))
  }

  private static func run(_ arguments: [String]) -> Int32 {
    do throws(UsageError) {
      switch try program.parse(arguments) {
      case .help(let text): StandardOutput.print(String(text.dropLast()))
      case .version: StandardOutput.print("settle \(version)")
      case .run(let run): return run()
      }
      return ExitCode.success
    } catch {
      StandardError.write("\(error.path): \(error.advice)")
      return ExitCode.usage
    }
  }

  /// Named as people type it.
  private static let program = Program(
    name: "settle",
    summary: "The part of settle that runs the gateway and works without one.",
    commands: [
      CommandEntry(RunCommand.self, section: "GATEWAY") { $0.run() },
      entry(CheckCommand.self, "GATEWAY"),
      entry(DemoCommand.self, "TRY"),
      entry(SimulateCommand.self, "TRY"),
    ]
  )

  private static func entry<Root: DaemonCommand>(
    _ type: Root.Type,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(type, section: section) { $0.run() }
  }
}
