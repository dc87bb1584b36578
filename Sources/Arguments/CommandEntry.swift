// Settle
// SPDX-License-Identifier: Apache-2.0

/// One command of a program, its type put away behind what it does.
package struct CommandEntry: Sendable {
  package let name: String
  package let summary: String
  /// The heading under which the program's help lists it.
  package let section: String
  /// What its help says beyond the summary; made when asked for, because making the tables of all
  /// commands would cost more than running one.
  package let details: @Sendable () -> CommandDetails
  /// Another program does it, and has its table.
  package let isPassed: Bool
  let read: @Sendable (_ path: String, [String]) throws(UsageError) -> Invocation?

  /// A command and what running it means; the result is the exit code.
  package init<Root: Command>(
    _ type: Root.Type,
    section: String = "COMMANDS",
    perform: @escaping @Sendable (Root) -> ExitCode
  ) {
    name = Root.name
    summary = Root.summary
    self.section = section
    isPassed = false
    details = {
      CommandDetails(
        discussion: Root.discussion,
        examples: Root.examples,
        parameters: Root.parameters.map(\.description)
      )
    }
    read = { (path, arguments) throws(UsageError) in
      var root = Root()
      switch try root.read(arguments, calledAs: path) {
      case .ready:
        let command = root
        return .run { perform(command) }
      case .version: return .version
      case .help: return nil
      }
    }
  }

  /// A command that takes its arguments untouched, `--help` included.
  package init(
    passing name: String,
    summary: String,
    section: String = "COMMANDS",
    perform: @escaping @Sendable ([String]) -> ExitCode
  ) {
    self.name = name
    self.summary = summary
    self.section = section
    isPassed = true
    details = { CommandDetails(discussion: "", examples: [], parameters: []) }
    read = { (_, arguments) throws(UsageError) in .run { perform(arguments) } }
  }
}

/// What help, completion and manual page say about a command.
package struct CommandDetails: Hashable, Sendable {
  package let discussion: String
  package let examples: [Example]
  package let parameters: [ParameterDescription]
}

/// What a command line asks for.
package enum Invocation {
  /// Print this text on standard output.
  case help(String)
  case version
  case run(() -> ExitCode)
}
