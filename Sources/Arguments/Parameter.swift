// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// One row of a command's table: its spelling, where its value goes, and its help.
///
/// The value goes through a closure, such as `{ $0.key = $1 }`: creating key paths takes longer
/// than all the rest of parsing.
package struct Parameter<Root>: Sendable {
  package let description: ParameterDescription
  /// Converts a text and stores the value.
  let assign: @Sendable (inout Root, String) throws(ArgumentValueError) -> Void
}

extension Parameter {
  private init<Value: ArgumentValue>(
    _ description: ParameterDescription,
    _ set: @escaping @Sendable (inout Root, Value) -> Void
  ) {
    self.description = description
    assign = { (root, text) throws(ArgumentValueError) in
      set(&root, try Value(argument: text))
    }
  }

  /// A positional argument; the table determines the order, and optional ones come last.
  package static func argument<Value: ArgumentValue>(
    _ name: String,
    _ set: @escaping @Sendable (inout Root, Value) -> Void,
    isOptional: Bool = false,
    completion: ParameterDescription.Completion = .none,
    help: String
  ) -> Self {
    Self(
      ParameterDescription(
        kind: isOptional ? .optionalArgument : .argument,
        name: name,
        completion: completion,
        help: help
      ),
      set
    )
  }

  /// Positional arguments without a limit, none included; they come last.
  package static func arguments<Value: ArgumentValue>(
    _ name: String,
    _ append: @escaping @Sendable (inout Root, Value) -> Void,
    completion: ParameterDescription.Completion = .none,
    help: String
  ) -> Self {
    Self(
      ParameterDescription(kind: .arguments, name: name, completion: completion, help: help),
      append
    )
  }

  /// An option with a value: `--name VALUE` or `--name=VALUE`.
  ///
  /// With the value `alone` it may stand alone: `--name` or `--name=VALUE`, never `--name VALUE`.
  package static func option<Value: ArgumentValue>(
    _ name: String,
    short: Character? = nil,
    _ set: @escaping @Sendable (inout Root, Value) -> Void,
    value: String,
    alone: String? = nil,
    completion: ParameterDescription.Completion = .none,
    help: String
  ) -> Self {
    Self(
      ParameterDescription(
        kind: alone.map { .optionalValue(alone: $0) } ?? .option,
        name: name,
        short: short,
        valueName: value,
        completion: completion,
        help: help
      ),
      set
    )
  }

  /// An option without a value.
  package static func flag(
    _ name: String,
    short: Character? = nil,
    _ set: @escaping @Sendable (inout Root) -> Void,
    help: String
  ) -> Self {
    Self(description: ParameterDescription(kind: .flag, name: name, short: short, help: help)) {
      (root, _) in set(&root)
    }
  }
}

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

/// A type that a parameter can have.
package protocol ArgumentValue: Sendable {
  /// Converts the typed text.
  init(argument: String) throws(ArgumentValueError)
}

/// Why a text is not a valid value; the message follows the parameter's name.
package struct ArgumentValueError: Error, Hashable, Sendable {
  package let message: String

  package init(_ message: String) { self.message = message }

  /// `must be …, found "…"`, with a suggestion.
  package init(expected: String, found: String, meant: String? = nil) {
    message =
      #"must be \#(expected), found "\#(Excerpt.of(found))""# + Suggestion.question(meant)
  }
}

extension String: ArgumentValue {
  package init(argument: String) { self = argument }
}

extension Int: ArgumentValue {
  package init(argument: String) throws(ArgumentValueError) {
    guard let number = Int(argument) else {
      throw ArgumentValueError(expected: "a whole number", found: argument)
    }
    self = number
  }
}

extension Double: ArgumentValue {
  package init(argument: String) throws(ArgumentValueError) {
    guard let number = NumberText.parse(argument) else {
      throw ArgumentValueError(
        expected: "a number",
        found: argument,
        meant: NumberText.suggestion(for: argument)
      )
    }
    self = number
  }
}

extension Duration: ArgumentValue {
  package init(argument: String) throws(ArgumentValueError) {
    do throws(DurationTextError) {
      self = try DurationText.read(argument)
    } catch {
      throw ArgumentValueError(error.description)
    }
  }
}

extension ArgumentValue where Self: RawRepresentable & CaseIterable, RawValue == String {
  /// Accepts the words of an enumeration.
  package init(argument: String) throws(ArgumentValueError) {
    let words = Self.allCases.map(\.rawValue)
    guard let value = Self(rawValue: argument) else {
      throw ArgumentValueError(
        expected: Self.list(words),
        found: argument,
        meant: Suggestion.nearest(to: argument, in: words)
      )
    }
    self = value
  }

  /// `a, b or c`.
  private static func list(_ words: [String]) -> String {
    guard let last = words.last, words.count > 1 else { return words.joined() }
    return words.dropLast().joined(separator: ", ") + " or " + last
  }
}
