// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc

/// The commands that need more than a socket; `settle` executes this program for them.
@main
struct Settled {
  static let version = "0.1.0"

  static func main() {
    exit(run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  private static func run(_ arguments: [String]) -> ExitCode {
    do throws(UsageError) {
      switch try program.parse(arguments) {
      case .help(let text): StandardStreams.print(String(text.dropLast()))
      case .version: StandardStreams.print("settle \(version)")
      case .run(let run): return run()
      }
      return .done
    } catch {
      StandardStreams.complain(error.advice, as: error.path)
      return .usage
    }
  }

  /// Named as people type it.
  private static let program = Program<ExitCode>(
    name: "settle",
    summary: "The part of settle that runs the gateway and works without one.",
    commands: [
      entry(CheckCommand.self, "GATEWAY"),
      entry(SimulateCommand.self, "TRY"),
    ]
  )

  private static func entry<Root: DaemonCommand>(
    _ type: Root.Type,
    _ section: String
  ) -> CommandEntry<ExitCode> {
    CommandEntry(type, section: section) { $0.run() }
  }
}
