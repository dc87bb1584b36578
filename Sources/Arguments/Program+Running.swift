// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

extension Program {
  /// Parses the process's command line, runs the command, and ends the process.
  ///
  /// Help and version go to standard output; a mistake goes to standard error, with exit code 64.
  package func main() -> Never {
    StandardStreams.openMissing()
    exit(run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  private func run(_ arguments: [String]) -> ExitCode {
    guard !arguments.isEmpty else {
      // As git does: the commands, and the exit code of a mistake.
      StandardOutput.show(help)
      return .usage
    }
    do throws(UsageError) {
      switch try parse(arguments) {
      case .help(let text): StandardOutput.print(String(text.dropLast()))
      case .version: StandardOutput.print("\(name) \(version)")
      case .run(let run): return run()
      }
      return .done
    } catch {
      StandardError.write(error.description)
      return .usage
    }
  }
}
