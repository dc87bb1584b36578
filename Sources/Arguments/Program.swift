// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Values

/// A program with commands: reads its command line, and writes its help.
package struct Program: Sendable {
  package let name: String
  package let version: String
  package let summary: String
  package let discussion: String
  package let examples: [Example]
  package let commands: [CommandEntry]

  package init(
    name: String,
    version: String,
    summary: String,
    discussion: String = "",
    examples: [Example] = [],
    commands: [CommandEntry]
  ) {
    self.name = name
    self.version = version
    self.summary = summary
    self.discussion = discussion
    self.examples = examples
    self.commands = commands
  }

  /// Parses the arguments after the program's name, without running or printing anything.
  ///
  /// - Throws: The first mistake, with a suggestion if a known word is similar.
  package func parse(_ arguments: [String]) throws(UsageError) -> Invocation {
    guard let first = arguments.first else {
      throw UsageError(path: name, message: "a command is missing")
    }
    switch first {
    case "--help", "-h": return .help(help)
    case "--version": return .version
    case "help": return try parseHelp(Array(arguments.dropFirst()))
    default: break
    }
    let entry = try command(first)
    let path = "\(name) \(entry.name)"
    return try entry.read(path, Array(arguments.dropFirst())) ?? .help(help(of: entry))
  }

  /// `help` and `help COMMAND`.
  private func parseHelp(_ arguments: [String]) throws(UsageError) -> Invocation {
    guard let word = arguments.first else { return .help(help) }
    let entry = try command(word)
    return try entry.read("\(name) \(entry.name)", ["--help"]) ?? .help(help(of: entry))
  }

  /// The command with this name; `path` is what was called, for the error message.
  ///
  /// - Throws: If there is none, with the most similar command or a list of all.
  package func command(
    _ word: String,
    calledAs path: String? = nil
  ) throws(UsageError) -> CommandEntry {
    if let entry = commands.first(where: { $0.name == word }) { return entry }
    if word.hasPrefix("-") {
      throw UsageError(
        path: path ?? name,
        message: #"unknown option "\#(Excerpt.of(word))"; options follow the command"#
      )
    }
    throw UsageError(
      path: path ?? name,
      message: #"unknown command "\#(Excerpt.of(word))""# + hint(for: word)
    )
  }

  /// The most similar command, otherwise all commands.
  private func hint(for word: String) -> String {
    let names = commands.map(\.name)
    guard let meant = Suggestion.nearest(to: word, in: names) else {
      return "; there are \(names.joined(separator: ", "))"
    }
    return Suggestion.question(meant)
  }

  /// The help of the whole program.
  package var help: String {
    var text = HelpText()
    text.paragraph("OVERVIEW", summary)
    text.paragraphs(discussion)
    text.usage(name, ["COMMAND", "[ARGUMENTS]"])
    var sections: [String] = []
    for command in commands where !sections.contains(command.section) {
      sections.append(command.section)
    }
    for section in sections {
      text.table(
        section,
        commands.filter { $0.section == section }.map { ($0.name, $0.summary) }
      )
    }
    text.table(
      "OPTIONS",
      [("-h, --help", "Show this, or a command's help."), ("--version", "Show the version.")]
    )
    text.examples(examples)
    return text.text
  }

  /// The help of one command.
  package func help(of command: CommandEntry) -> String {
    var text = HelpText()
    let details = command.details()
    let options = details.parameters.filter { !$0.isPositional }
    let arguments = details.parameters.filter(\.isPositional)
    text.paragraph("OVERVIEW", command.summary)
    text.paragraphs(details.discussion)
    text.usage("\(name) \(command.name)", (options + arguments).map(\.usage))
    text.table("ARGUMENTS", arguments.map { ($0.spelling, $0.help) })
    text.table(
      "OPTIONS",
      options.map { ($0.spelling, $0.help) } + [("-h, --help", "Show this help.")]
    )
    text.examples(details.examples)
    return text.text
  }
}

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
