// Settle
// SPDX-License-Identifier: Apache-2.0

/// One command of a program, its type put away behind what it does.
package struct CommandEntry<Outcome>: Sendable {
  package let name: String
  package let summary: String
  /// The heading under which the program's help lists it.
  package let section: String
  package let discussion: String
  package let examples: [Example]
  package let parameters: [ParameterDescription]
  let read: @Sendable (_ path: String, [String]) throws(UsageError) -> Invocation<Outcome>?

  /// A command and what running it means.
  package init<Root: Command>(
    _ type: Root.Type,
    section: String = "COMMANDS",
    perform: @escaping @Sendable (Root) -> Outcome
  ) {
    name = Root.name
    summary = Root.summary
    self.section = section
    discussion = Root.discussion
    examples = Root.examples
    parameters = Root.parameters.map(\.description)
    read = { (path, arguments) throws(UsageError) in
      switch try CommandParser<Root>(path: path, arguments: arguments).parse() {
      case .command(let command): .run { perform(command) }
      case .version: .version
      case .help: nil
      }
    }
  }

  /// A command that takes its arguments untouched, `--help` included.
  package init(
    passing name: String,
    summary: String,
    section: String = "COMMANDS",
    perform: @escaping @Sendable ([String]) -> Outcome
  ) {
    self.name = name
    self.summary = summary
    self.section = section
    discussion = ""
    examples = []
    parameters = []
    read = { (_, arguments) throws(UsageError) in .run { perform(arguments) } }
  }
}

/// What a command line asks for.
package enum Invocation<Outcome> {
  /// Print this text on standard output.
  case help(String)
  case version
  case run(() -> Outcome)
}
