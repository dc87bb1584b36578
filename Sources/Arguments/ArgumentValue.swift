// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

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
