// Settle
// SPDX-License-Identifier: Apache-2.0

/// Arguments as they are typed most: words, and options that are told apart by their whole text.
///
/// Reads like a table of parameters without there being one, for commands that are started for every
/// tap: making the table takes longer than all else that they do.
package struct PlainArguments {
  private let arguments: [String]
  private var place = 0

  package init(_ arguments: [String]) { self.arguments = arguments }

  /// What the arguments are, up to the first that is neither a word nor taken as an option.
  ///
  /// `option` stores what an option means and may ask for its value; `false` if it is none.
  ///
  /// - Returns: The words in their order; `nil` if the table has to read the arguments, which then
  ///   says what is wrong, if anything is.
  package mutating func words(
    option: (_ text: String, _ arguments: inout PlainArguments) -> Bool
  ) -> [String]? {
    var words: [String] = []
    while place < arguments.count {
      let argument = arguments[place]
      place += 1
      if CommandParser.isWord(argument) {
        words.append(argument)
      } else if !option(argument, &self) {
        return nil
      }
    }
    return words
  }

  /// The value that stands behind an option, if one does.
  package mutating func value() -> String? {
    guard place < arguments.count, CommandParser.isWord(arguments[place]) else { return nil }
    place += 1
    return arguments[place - 1]
  }
}
