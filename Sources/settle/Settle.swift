// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Glibc

@main
struct Settle {
  static let version = "0.1.0"

  static func main() {
    exit(run(Array(CommandLine.arguments.dropFirst())))
  }

  private static func run(_ arguments: [String]) -> Int32 {
    do throws(UsageError) {
      switch try program.parse(arguments) {
      case .help(let text): Terminal.print(String(text.dropLast()))
      case .version: Terminal.print("settle \(version)")
      case .run(let run): return run()
      }
      return ExitCode.done.rawValue
    } catch {
      Terminal.complain(error.advice, as: error.path)
      return ExitCode.usage.rawValue
    }
  }

  private static let program = Program(
    name: "settle",
    summary: "Turn the knob. Settle sends only where it stopped.",
    discussion: """
      Changes to a device's property are collapsed until it has been quiet for a moment; only the \
      last value is sent over MQTT. Start the gateway with "settle run" and talk to it with the \
      other commands.
      """,
    examples: [
      Example("settle demo", "See it at work: simulated devices, a broker, the gateway."),
      Example("settle run --config settle.yaml", "The gateway."),
      Example("settle set desk-lamp/brightness 40 --wait", "Change something and see it happen."),
      Example("settle watch", "What happens to every command."),
    ],
    commands: [
      entry(SetCommand.self, "CHANGE"),
      entry(StepCommand.self, "CHANGE"),
      entry(ToggleCommand.self, "CHANGE"),
      daemon("control", "Steppers on the full screen.", "CHANGE"),
      daemon(
        "pipe",
        "Changes as NDJSON from standard input, results on standard output.",
        "CHANGE"
      ),
      entry(GetCommand.self, "LOOK"),
      entry(WatchCommand.self, "LOOK"),
      entry(PendingCommand.self, "QUEUE"),
      entry(FlushCommand.self, "QUEUE"),
      entry(CancelCommand.self, "QUEUE"),
      daemon("run", "Run the gateway.", "GATEWAY"),
      daemon("check", "Validate configuration and devices.", "GATEWAY"),
      entry(ReloadCommand.self, "GATEWAY"),
      daemon("import", "Write device files for what is already announced over MQTT.", "GATEWAY"),
      CommandEntry(CompletionsCommand.self, section: "SHELL") { command in
        Terminal.print(String(completions(for: command.shell).dropLast()))
        return ExitCode.done.rawValue
      },
      daemon("demo", "Try everything with simulated devices and a private broker.", "TRY"),
      daemon("simulate", "Show what would be sent for timed changes, without a broker.", "TRY"),
      daemon("record", "Write the changes that come in as NDJSON, for simulate.", "TRY"),
    ]
  )

  private static func completions(for shell: Completions.Shell) -> String {
    Completions.script(
      for: program,
      shell: shell,
      listingKeysWith: "settle get 2>/dev/null | cut -f1"
    )
  }

  /// A command that asks the gateway.
  private static func entry<Root: GatewayCommand>(
    _ type: Root.Type,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(type, section: section) { command in
      do throws(ClientError) {
        return try command.run().rawValue
      } catch {
        Terminal.complain("\(error)")
        return ExitCode.unavailable.rawValue
      }
    }
  }

  /// A command that `settled` does.
  private static func daemon(
    _ name: String,
    _ summary: String,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(passing: name, summary: summary, section: section) {
      Daemon.execute(name, $0).rawValue
    }
  }
}
