// Settle
// SPDX-License-Identifier: Apache-2.0

/// One row of a command's table: its spelling, where its value goes, and its help.
///
/// The value goes through a closure, such as `{ $0.key = $1 }`: creating key paths takes longer
/// than all the rest of parsing.
package struct Parameter<Root>: Sendable {
  package let description: ParameterDescription
  /// Converts a text and stores the value.
  let assign: @Sendable (inout Root, String) throws(ArgumentValueError) -> Void

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
  package static func option<Value: ArgumentValue>(
    _ name: String,
    short: Character? = nil,
    _ set: @escaping @Sendable (inout Root, Value) -> Void,
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
      set
    )
  }

  /// An option that may stand alone: `--name` or `--name=VALUE`, never `--name VALUE`.
  package static func option<Value: ArgumentValue>(
    _ name: String,
    _ set: @escaping @Sendable (inout Root, Value) -> Void,
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

  private init(
    description: ParameterDescription,
    assign: @escaping @Sendable (inout Root, String) throws(ArgumentValueError) -> Void
  ) {
    self.description = description
    self.assign = assign
  }
}
