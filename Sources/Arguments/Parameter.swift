// Settle
// SPDX-License-Identifier: Apache-2.0

/// One row of a command's table: its spelling, its key path and its help.
package struct Parameter<Root>: Sendable {
  package let description: ParameterDescription
  /// Converts a text and stores the value.
  let assign: @Sendable (inout Root, String) throws(ArgumentValueError) -> Void

  // Key paths are created when used: creating those of all rows takes longer than parsing.
  private init<Value: ArgumentValue>(
    _ description: ParameterDescription,
    _ path: @escaping @autoclosure @Sendable () -> WritableKeyPath<Root, Value>
  ) {
    self.description = description
    assign = { (root, text) throws(ArgumentValueError) in
      try root[keyPath: path()].receive(argument: text)
    }
  }

  /// A positional argument; the table determines the order, and optional ones come last.
  package static func argument<Value: ArgumentValue>(
    _ name: String,
    _ path: @escaping @autoclosure @Sendable () -> WritableKeyPath<Root, Value>,
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
      path()
    )
  }

  /// Positional arguments without a limit, none included; they come last.
  package static func arguments<Value: ArgumentValue>(
    _ name: String,
    _ path: @escaping @autoclosure @Sendable () -> WritableKeyPath<Root, [Value]>,
    completion: ParameterDescription.Completion = .none,
    help: String
  ) -> Self {
    Self(
      ParameterDescription(kind: .arguments, name: name, completion: completion, help: help),
      path()
    )
  }

  /// An option with a value: `--name VALUE` or `--name=VALUE`.
  package static func option<Value: ArgumentValue>(
    _ name: String,
    short: Character? = nil,
    _ path: @escaping @autoclosure @Sendable () -> WritableKeyPath<Root, Value>,
    value: String,
    completion: ParameterDescription.Completion = .none,
    help: String
  ) -> Self {
    Self(
      ParameterDescription(
        kind: .option,
        name: name,
        short: short,
        valueName: value,
        completion: completion,
        help: help
      ),
      path()
    )
  }

  /// An option that may stand alone: `--name` or `--name=VALUE`, never `--name VALUE`.
  package static func option<Value: ArgumentValue>(
    _ name: String,
    _ path: @escaping @autoclosure @Sendable () -> WritableKeyPath<Root, Value>,
    value: String,
    alone: String,
    completion: ParameterDescription.Completion = .none,
    help: String
  ) -> Self {
    Self(
      ParameterDescription(
        kind: .optionalValue(alone: alone),
        name: name,
        valueName: value,
        completion: completion,
        help: help
      ),
      path()
    )
  }

  /// An option without a value.
  package static func flag(
    _ name: String,
    short: Character? = nil,
    _ path: @escaping @autoclosure @Sendable () -> WritableKeyPath<Root, Bool>,
    help: String
  ) -> Self {
    Self(ParameterDescription(kind: .flag, name: name, short: short, help: help), path())
  }
}
