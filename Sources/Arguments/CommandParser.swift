// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Reads the arguments of one command by its table.
///
/// It refers to rows by index and passes each text to the caller, so one parser serves all types of
/// commands.
struct CommandParser {
  enum Result {
    /// All arguments are read.
    case ready
    case help
    case version
  }

  /// Assigns the text of a row.
  typealias Assign = (_ row: Int, String) throws(ArgumentValueError) -> Void

  /// The command as it was called, such as `settle set`.
  let path: String
  let arguments: [String]
  let parameters: [ParameterDescription]

  func parse(_ assign: Assign) throws(UsageError) -> Result {
    var positional = parameters.indices.filter { parameters[$0].isPositional }[...]
    var rest = arguments[...]
    var optionsEnded = false
    while let argument = rest.popFirst() {
      if optionsEnded || Self.isWord(argument) {
        guard let row = positional.first else {
          throw error(#"unexpected argument "\#(Excerpt.of(argument))""#)
        }
        if parameters[row].kind != .arguments { positional.removeFirst() }
        try store(argument, row, assign)
      } else if argument == "--" {
        optionsEnded = true
      } else if argument == "--help" || argument == "-h" {
        return .help
      } else if argument == "--version" {
        return .version
      } else if argument.hasPrefix("--") {
        try readLong(argument, &rest, assign)
      } else {
        try readShort(argument, &rest, assign)
      }
    }
    if let missing = positional.first(where: { parameters[$0].kind == .argument }) {
      throw error("\(parameters[missing].spelling) is missing")
    }
    return .ready
  }

  /// Reads `--name`, `--name VALUE` or `--name=VALUE`.
  private func readLong(
    _ argument: String,
    _ rest: inout ArraySlice<String>,
    _ assign: Assign
  ) throws(UsageError) {
    let parts = argument.dropFirst(2).split(
      separator: "=",
      maxSplits: 1,
      omittingEmptySubsequences: false
    )
    let name = String(parts[0])
    let attached = parts.count == 2 ? String(parts[1]) : nil
    guard let row = parameters.firstIndex(where: { !$0.isPositional && $0.name == name }) else {
      let names = parameters.filter { !$0.isPositional }.map { "--\($0.name)" }
      throw error(
        #"unknown option "--\#(Excerpt.of(name))""#
          + Suggestion.hint(for: "--" + name, in: names + ["--help", "--version"])
      )
    }
    switch parameters[row].kind {
    case .flag:
      if attached != nil { throw error("--\(name) has no value") }
      try store("true", row, assign)
    case .optionalValue(let alone): try store(attached ?? alone, row, assign)
    case .option:
      let text = if let attached { attached } else { try value(of: row, from: &rest) }
      try store(text, row, assign)
    case .argument, .optionalArgument, .arguments:
      preconditionFailure("A positional parameter was looked up among the options.")
    }
  }

  /// Reads `-v`, `-vj`, `-o VALUE` or `-oVALUE`.
  private func readShort(
    _ argument: String,
    _ rest: inout ArraySlice<String>,
    _ assign: Assign
  ) throws(UsageError) {
    var letters = argument.dropFirst()
    while let letter = letters.popFirst() {
      guard let row = parameters.firstIndex(where: { $0.short == letter }) else {
        let names = parameters.filter { !$0.isPositional }.map { "--\($0.name)" }
        let long = "-" + argument
        let meant = names.contains(long) ? long : Suggestion.nearest(to: long, in: names)
        throw error(
          #"unknown option "-\#(Excerpt.of(String(letter)))""# + Suggestion.question(meant)
        )
      }
      guard parameters[row].kind == .option else {
        try store("true", row, assign)
        continue
      }
      let text = letters.isEmpty ? try value(of: row, from: &rest) : String(letters)
      letters = ""
      try store(text, row, assign)
    }
  }

  /// Whether `text` is a word, not an option: it has no leading `-`, is a negative number, or is
  /// `-`.
  static func isWord(_ text: String) -> Bool {
    var bytes = text.utf8.makeIterator()
    guard bytes.next() == UInt8(ascii: "-"), let second = bytes.next() else { return true }
    // A sign with a combining mark is not a sign.
    return (48...57).contains(second) || second == UInt8(ascii: ".") || !text.hasPrefix("-")
  }

  private func value(
    of row: Int,
    from rest: inout ArraySlice<String>
  ) throws(UsageError) -> String {
    guard let next = rest.first, Self.isWord(next) else {
      let (name, value) = (parameters[row].name, parameters[row].valueName)
      throw error("--\(name) needs a value: --\(name) \(value)")
    }
    return rest.removeFirst()
  }

  private func store(_ text: String, _ row: Int, _ assign: Assign) throws(UsageError) {
    do throws(ArgumentValueError) {
      try assign(row, text)
    } catch {
      let parameter = parameters[row]
      let name = parameter.isPositional ? parameter.spelling : "--\(parameter.name)"
      throw self.error("\(name) \(error.message)")
    }
  }

  private func error(_ message: String) -> UsageError { UsageError(path: path, message: message) }
}

/// Why a command line is wrong; the exit code is 64.
package struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The command as it was called, such as `settle set`.
  package let path: String
  /// One sentence without a full stop: what was found, and what is allowed.
  package let message: String

  package init(path: String, message: String) {
    self.path = path
    self.message = message
  }

  /// The message and where to find help, without the path.
  package var advice: String { "\(message)\nSee \"\(path) --help\"." }

  /// Two lines fit for standard error.
  package var description: String { "\(path): \(advice)" }
}
