// Settle
// SPDX-License-Identifier: Apache-2.0

/// A parameter as help, completion and manual page describe it.
package struct ParameterDescription: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case argument
    case optionalArgument
    /// Any number of arguments.
    case arguments
    case option
    /// An option that means `alone` when it has no value.
    case optionalValue(alone: String)
    case flag
  }

  /// The completions that a shell offers for the value.
  package enum Completion: Hashable, Sendable {
    case none
    case files
    case directories
    /// Keys of the running gateway.
    case keys
    /// Those of its keys that a command accepts: `step`, `toggle`.
    case keysOf(String)
    /// Values of the key that the first argument names.
    case values
    /// Properties of the device that the first argument names; nothing after a key.
    case members
    /// Names of the program's commands.
    case commands
    case words([String])
  }

  package let kind: Kind
  /// The word after `--`, or the name of a positional argument.
  package let name: String
  package var short: Character?
  package var valueName = ""
  package var completion = Completion.none
  package let help: String

  /// Whether the position identifies it, without `--`.
  package var isPositional: Bool {
    switch kind {
    case .argument, .optionalArgument, .arguments: true
    case .option, .optionalValue, .flag: false
    }
  }

  /// The spelling in the help: `KEY`, `--ttl D`, `--wait[=PHASE]`, `-v, --verbose`.
  package var spelling: String {
    let dashes = short.map { "-\($0), --\(name)" } ?? "--\(name)"
    return switch kind {
    case .argument, .optionalArgument: name.uppercased()
    case .arguments: "\(name.uppercased())…"
    case .option: "\(dashes) \(valueName)"
    case .optionalValue: "\(dashes)[=\(valueName)]"
    case .flag: dashes
    }
  }

  /// The spelling in the usage line, in brackets if it is optional.
  package var usage: String {
    switch kind {
    case .argument: name.uppercased()
    case .optionalArgument: "[\(name.uppercased())]"
    case .arguments: "[\(name.uppercased())…]"
    case .option: "[--\(name) \(valueName)]"
    case .optionalValue: "[--\(name)[=\(valueName)]]"
    case .flag: "[--\(name)]"
    }
  }
}
