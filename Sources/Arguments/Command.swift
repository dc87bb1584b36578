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
