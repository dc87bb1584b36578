// Settle
// SPDX-License-Identifier: Apache-2.0

/// Numbers as people type them: `40`, `-5`, `+10`, `0.5`, `1e3`.
package enum NumberText {
  /// The finite number that `text` says; a decimal comma is refused with a suggestion.
  package static func parse(_ text: String) throws(ArgumentValueError) -> Double {
    // Swift would take hexadecimal numbers and words such as "nan" too.
    let isPlain = text.utf8.allSatisfy { (48...57).contains($0) || "+-.eE".utf8.contains($0) }
    if isPlain, let number = Double(text), number.isFinite { return number }
    var error = ArgumentValueError(expected: "a number", found: text)
    let pointed = text.split(separator: ",", omittingEmptySubsequences: false)
    if pointed.count == 2, Double(pointed.joined(separator: ".")) != nil {
      error = ArgumentValueError(
        error.message + #"; did you mean "\#(pointed.joined(separator: "."))"?"#
      )
    }
    throw error
  }

  /// Whether `text` starts like a negative number, and so is no option.
  static func looksNegative(_ text: String) -> Bool {
    let second = text.utf8.dropFirst().first
    return text.utf8.first == UInt8(ascii: "-")
      && second.map { (48...57).contains($0) || $0 == UInt8(ascii: ".") } == true
  }
}
