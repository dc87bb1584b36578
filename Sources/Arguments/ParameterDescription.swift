// Settle
// SPDX-License-Identifier: Apache-2.0

/// What help, completion and manual page need to know about a parameter.
package struct ParameterDescription: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case argument
    case optionalArgument
    case option
    /// An option that means `alone` when it has no value.
    case optionalValue(alone: String)
    case flag
  }

  /// What a shell may offer for the value.
  package enum Completion: Hashable, Sendable {
    case none
    case files
    case directories
    /// Keys of the running gateway.
    case keys
    /// Names of the program's commands.
    case commands
    case words([String])
  }

  package let kind: Kind
  /// The word behind `--`, or the name of a positional argument.
  package let name: String
  package var short: Character?
  package var valueName = ""
  package var completion = Completion.none
  package let help: String

  /// Whether it is written without `--`, by its place.
  package var isPositional: Bool {
    switch kind {
    case .argument, .optionalArgument: true
    case .option, .optionalValue, .flag: false
    }
  }

  /// How the help writes it: `KEY`, `--ttl D`, `--wait[=PHASE]`, `-v, --verbose`.
  package var spelling: String {
    let dashes = short.map { "-\($0), --\(name)" } ?? "--\(name)"
    return switch kind {
    case .argument, .optionalArgument: name.uppercased()
    case .option: "\(dashes) \(valueName)"
    case .optionalValue: "\(dashes)[=\(valueName)]"
    case .flag: dashes
    }
  }

  /// How the usage line writes it, in brackets where it may be left out.
  package var usage: String {
    switch kind {
    case .argument: name.uppercased()
    case .optionalArgument: "[\(name.uppercased())]"
    case .option: "[--\(name) \(valueName)]"
    case .optionalValue: "[--\(name)[=\(valueName)]]"
    case .flag: "[--\(name)]"
    }
  }
}
