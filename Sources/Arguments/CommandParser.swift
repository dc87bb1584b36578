// Settle
// SPDX-License-Identifier: Apache-2.0

/// Reads the arguments of one command by its table.
struct CommandParser<Root: Command> {
  enum Result {
    case command(Root)
    case help
    case version
  }

  /// What was called, as `settle set`.
  let path: String
  let arguments: [String]

  func parse() throws(UsageError) -> Result {
    var root = Root()
    var positional = Root.parameters.filter(\.description.isPositional)[...]
    var rest = arguments[...]
    var optionsEnded = false
    while let argument = rest.popFirst() {
      let isOption =
        !optionsEnded && argument.hasPrefix("-") && argument != "-"
        && !NumberText.looksNegative(argument)
      if !isOption {
        guard let parameter = positional.popFirst() else {
          throw error(#"unexpected argument "\#(NearMiss.shortened(argument))""#)
        }
        try store(argument, parameter, into: &root)
      } else if argument == "--" {
        optionsEnded = true
      } else if argument == "--help" || argument == "-h" {
        return .help
      } else if argument == "--version" {
        return .version
      } else if argument.hasPrefix("--") {
        try readLong(argument, &rest, into: &root)
      } else {
        try readShort(argument, &rest, into: &root)
      }
    }
    if let missing = positional.first(where: { $0.description.kind == .argument }) {
      throw error("\(missing.description.spelling) is missing")
    }
    return .command(root)
  }

  /// Reads `--name`, `--name VALUE` or `--name=VALUE`.
  private func readLong(
    _ argument: String,
    _ rest: inout ArraySlice<String>,
    into root: inout Root
  ) throws(UsageError) {
    let parts = argument.dropFirst(2).split(
      separator: "=",
      maxSplits: 1,
      omittingEmptySubsequences: false
    )
    let name = String(parts[0])
    let attached = parts.count == 2 ? String(parts[1]) : nil
    let options = Root.parameters.filter { !$0.description.isPositional }
    guard let option = options.first(where: { $0.description.name == name }) else {
      let names = options.map { "--\($0.description.name)" } + ["--help", "--version"]
      throw error(
        #"unknown option "--\#(NearMiss.shortened(name))""#
          + NearMiss.hint("--" + name, among: names)
      )
    }
    switch option.description.kind {
    case .flag:
      if attached != nil { throw error("--\(name) takes no value") }
      try store("true", option, into: &root)
    case .optionalValue(let alone): try store(attached ?? alone, option, into: &root)
    case .option:
      let text = if let attached { attached } else { try value(of: option, from: &rest) }
      try store(text, option, into: &root)
    case .argument, .optionalArgument:
      preconditionFailure("A positional parameter was looked up among the options.")
    }
  }

  /// Reads `-v`, `-vj`, `-o VALUE` or `-oVALUE`.
  private func readShort(
    _ argument: String,
    _ rest: inout ArraySlice<String>,
    into root: inout Root
  ) throws(UsageError) {
    var letters = argument.dropFirst()
    while let letter = letters.popFirst() {
      guard let option = Root.parameters.first(where: { $0.description.short == letter }) else {
        throw error(
          #"unknown option "-\#(NearMiss.shortened(String(letter)))""#
            + NearMiss.hint(
              "-" + argument,
              among: Root.parameters.map { "--\($0.description.name)" }
            )
        )
      }
      guard option.description.kind == .option else {
        try store("true", option, into: &root)
        continue
      }
      let text = letters.isEmpty ? try value(of: option, from: &rest) : String(letters)
      letters = ""
      try store(text, option, into: &root)
    }
  }

  private func value(
    of option: Parameter<Root>,
    from rest: inout ArraySlice<String>
  ) throws(UsageError) -> String {
    let description = option.description
    guard let next = rest.first,
      !next.hasPrefix("-") || next == "-" || NumberText.looksNegative(next)
    else {
      throw error(
        "--\(description.name) needs a value: --\(description.name) \(description.valueName)"
      )
    }
    return rest.removeFirst()
  }

  private func store(
    _ text: String,
    _ parameter: Parameter<Root>,
    into root: inout Root
  ) throws(UsageError) {
    do throws(ArgumentValueError) {
      try parameter.assign(&root, text)
    } catch {
      let description = parameter.description
      let name = description.isPositional ? description.spelling : "--\(description.name)"
      throw self.error("\(name) \(error.message)")
    }
  }

  private func error(_ message: String) -> UsageError { UsageError(path: path, message: message) }
}
