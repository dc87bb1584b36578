// Settle
// SPDX-License-Identifier: Apache-2.0

/// A command as a value: the table of parameters fills in its stored properties.
///
/// Parsing, help, completion and manual page come from the same table.
package protocol Command: Sendable {
  /// The word that calls the command.
  static var name: String { get }
  /// One sentence for the list of commands.
  static var summary: String { get }
  /// More about it, in paragraphs; empty by default.
  static var discussion: String { get }
  /// Command lines to learn from; none by default.
  static var examples: [Example] { get }
  /// Positional arguments in their order, options and flags in the order of the help.
  static var parameters: [Parameter<Self>] { get }

  /// The command with every default.
  init()
}

extension Command {
  package static var discussion: String { "" }
  package static var examples: [Example] { [] }

  /// Reads the arguments that follow the command's name.
  ///
  /// - Throws: The first mistake, with what is allowed.
  package init(arguments: [String], calledAs path: String) throws(UsageError) {
    self.init()
    _ = try read(arguments, calledAs: path)
  }

  /// Parses the arguments into this command; stops at `--help` or `--version`.
  mutating func read(
    _ arguments: [String],
    calledAs path: String
  ) throws(UsageError) -> CommandParser.Result {
    let table = Self.parameters
    let parser = CommandParser(
      path: path,
      arguments: arguments,
      parameters: table.map(\.description)
    )
    return try parser.parse { (row, text) throws(ArgumentValueError) in
      try table[row].assign(&self, text)
    }
  }
}

/// A command line and its purpose.
package struct Example: Hashable, Sendable {
  package let line: String
  package let meaning: String

  package init(_ line: String, _ meaning: String) {
    self.line = line
    self.meaning = meaning
  }
}

/// One command of a program, with its type erased.
package struct CommandEntry: Sendable {
  package let name: String
  package let summary: String
  /// The heading under which the program's help lists it.
  package let section: String
  /// The parts of its help beyond the summary.
  ///
  /// They are created on demand, because the tables of all commands cost more than running one.
  package let details: @Sendable () -> CommandDetails
  /// Whether another program runs it and has its table.
  package let isPassed: Bool
  let read: @Sendable (_ path: String, [String]) throws(UsageError) -> Invocation?

  /// Creates an entry for a command that `run` executes and returns the exit code of.
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

  /// Creates an entry for a command that receives its arguments unparsed, `--help` included.
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

/// The content of help, completion and manual page of a command.
package struct CommandDetails: Hashable, Sendable {
  package let discussion: String
  package let examples: [Example]
  package let parameters: [ParameterDescription]
}

/// A parsed command line.
package enum Invocation {
  /// Print this text on standard output.
  case help(String)
  case version
  case run(() -> ExitCode)
}
