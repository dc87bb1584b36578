// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

@main
struct Settle {
  static func main() { program.main() }

  private static let program = Program(
    name: "settle",
    version: Release.description,
    summary: "Turn the knob. Settle sends only where it stopped.",
    discussion: """
      Settle collapses rapid changes of a property and publishes only the last value over MQTT, \
      once the property has been quiet for a moment. Set up with "settle init", and start the \
      gateway with "settle run"; the other commands talk to it.
      """,
    examples: [
      Example("settle demo", "See it at work: simulated devices, a broker and the gateway."),
      Example("settle run --config settle.yaml", "Run the gateway."),
      Example(
        "settle set desk-lamp/brightness 40 --wait",
        "Change a value and follow it until the device confirms."
      ),
      Example("settle watch", "Show every event, live."),
    ],
    commands: [
      entry(SetCommand.self, "CHANGE"),
      entry(StepCommand.self, "CHANGE"),
      entry(ToggleCommand.self, "CHANGE"),
      entry(SceneCommand.self, "CHANGE"),
      entry(PipeCommand.self, "CHANGE"),
      daemon("control", "Step values on a full screen, and see each settle.", "LOOK"),
      entry(StatusCommand.self, "LOOK"),
      entry(GetCommand.self, "LOOK"),
      entry(DescribeCommand.self, "LOOK"),
      entry(LogCommand.self, "LOOK"),
      entry(DevicesCommand.self, "LOOK"),
      entry(WatchCommand.self, "LOOK"),
      entry(WaitCommand.self, "LOOK"),
      entry(RecordCommand.self, "LOOK"),
      entry(PendingCommand.self, "QUEUE"),
      entry(FlushCommand.self, "QUEUE"),
      entry(CancelCommand.self, "QUEUE"),
      daemon(
        "init",
        "Set up: test the broker, and write settings and device files.",
        "GATEWAY"
      ),
      daemon("run", "Run the gateway.", "GATEWAY"),
      daemon("check", "Validate configuration and devices.", "GATEWAY"),
      daemon("import", "Write device files for the devices that the broker announces.", "GATEWAY"),
      entry(ReloadCommand.self, "GATEWAY"),
      daemon("profiles", "List the built-in device profiles, or show what one holds.", "GATEWAY"),
      daemon("schema", "Print the JSON Schema of the settings file or of device files.", "GATEWAY"),
      CommandEntry(CompletionsCommand.self, section: "SHELL") { printCompletions($0) },
      CommandEntry(ManualCommand.self, section: "SHELL") { manual(of: $0.command) },
      daemon("demo", "Try everything with simulated devices and a private broker.", "TRY"),
      daemon("simulate", "Show what would be sent for timed changes, without a broker.", "TRY"),
      daemon(
        "advise",
        "Try policies on recorded gestures, and suggest one for each key.",
        "TRY"
      ),
    ]
  )

  /// Shows a manual page; `settled` has the tables of the commands that it runs.
  private static func manual(of name: String) -> ExitCode {
    if name.isEmpty {
      let page = ManualPage.text(of: program, exitCodes: ExitCode.meanings)
      return ManualPage.show(page, help: program.help)
    }
    let entry: CommandEntry
    do throws(UsageError) {
      entry = try program.command(name, calledAs: "settle manual")
    } catch {
      StandardError.write(error.description)
      return .usage
    }
    if entry.isPassed { return Daemon.execute("manual", [name]) }
    return ManualPage.show(ManualPage.text(of: entry, in: program), help: program.help(of: entry))
  }

  /// Prints the script; `settled` adds its part for the commands that it runs.
  private static func printCompletions(_ command: CompletionsCommand) -> ExitCode {
    guard command.keys == nil, command.valuesOf == nil else { return run(command) }
    guard let shell = command.shell else {
      Terminal.complain("completions: SHELL is missing; bash, zsh or fish")
      return .usage
    }
    let script = Completions(for: program, asking: "settle completions").script(for: shell)
    StandardOutput.print(String(script.dropLast()))
    let passed = program.commands.filter(\.isPassed).map(\.name).joined(separator: ",")
    return Daemon.execute(CompletionsCommand.name, [shell.rawValue, "--commands=\(passed)"])
  }

  /// A command that talks to the gateway.
  private static func entry<Root: GatewayCommand>(
    _ type: Root.Type,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(type, section: section) { run($0) }
  }

  private static func run(_ command: some GatewayCommand) -> ExitCode {
    do throws(ClientError) {
      return try command.run()
    } catch {
      Terminal.complain("\(error)")
      return .unavailable
    }
  }

  /// A command that `settled` runs.
  private static func daemon(
    _ name: String,
    _ summary: String,
    _ section: String
  ) -> CommandEntry {
    CommandEntry(passing: name, summary: summary, section: section) {
      Daemon.execute(name, $0)
    }
  }
}
