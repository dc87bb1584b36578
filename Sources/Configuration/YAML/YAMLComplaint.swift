// Settle
// SPDX-License-Identifier: Apache-2.0

import Values

/// Messages of the YAML parser in words that name the likely fix.
enum YAMLComplaint {
  /// The words for a message; the message itself where its cause is not a usual one.
  static func words(for message: String) -> String {
    let unquotable = "plain scalar cannot start with "
    if message.hasPrefix(unquotable),
      let sign = message.dropFirst(unquotable.count).split(separator: " ").first
    {
      return "a text that begins with \(sign) needs quotes"
    }
    return table.first { message.has($0.part) }?.words ?? message
  }

  /// Words by a part of the message; the first part that matches counts.
  private static let table: [(part: String, words: String)] = [
    (
      "invalid multiline plain key",
      "this text runs on into the next line, which is 'key: value'; is a ':' missing, or the space"
        + " after it, or is the next line indented too far?"
    ),
    (
      "invalid value after mapping",
      "this line is not 'key: value'; is the ':' missing, or the space after it?"
    ),
    (
      "could not find expected ':'",
      "this line is not 'key: value'; is the ':' missing, or the space after it?"
    ),
    ("tab", "a tab cannot indent; use spaces"),
    ("flow sequence without a closing", "a list that '[' begins has no ']'"),
    ("flow mapping without a closing", "a mapping that '{' begins has no '}'"),
    (
      "missing comma in flow mapping",
      "between the entries of '{…}' a ',' is missing, or a '}' at its end"
    ),
    (
      "missing comma in flow sequence",
      "between the entries of '[…]' a ',' is missing, or a ']' at its end"
    ),
    ("single-quoted scalar without closing quote", "the closing ' of this text is missing"),
    ("double-quoted scalar without closing quote", "the closing \" of this text is missing"),
    (
      "wrongly indented double-quoted scalar",
      "the closing \" of this text is missing, or its next line is not indented"
    ),
    (
      "wrongly indented single-quoted scalar",
      "the closing ' of this text is missing, or its next line is not indented"
    ),
    (
      "invalid nested block mapping on the same line",
      "a second ': ' in one line; put the value in quotes"
    ),
    ("invalid indentation in mapping", differentIndentation),
    ("wrongly indented", differentIndentation),
    ("indent for", differentIndentation),
    ("invalid alias", "'*' begins an alias; put the text in quotes"),
    ("invalid anchor", "'&' begins an anchor; put the text in quotes"),
    (
      "invalid mapping key (not allowed in this context)",
      "'?' begins a key; put the text in quotes"
    ),
    (
      "invalid scalar at the end of block sequence",
      "this line is not part of the list before it; begin it with '- ', or indent it like the key"
        + " of the list"
    ),
    (
      "did not find expected key",
      "a list entry stands among keys; write each line as 'key: value', or each as '- value'"
    ),
    (
      "did not find expected node content",
      "a value is missing before this comma or bracket"
    ),
    (
      "invalid escape",
      "this backslash has no meaning in double quotes; double it, or use single quotes"
    ),
    ("extra closing bracket", "this ']' closes nothing"),
    ("extra closing brace", "this '}' closes nothing"),
    ("mismatched flow mapping end", "'}' does not close the list that '[' began"),
    ("mismatched flow sequence end", "']' does not close the mapping that '{' began"),
    ("invalid trailing content after", "text follows the closing quote; quote all of it"),
    ("block scalar no linebreak", "text follows '|' or '>'; begin it on the next line"),
    ("invalid comment without whitespace", "a comment needs a space before its '#'"),
  ]

  private static let differentIndentation =
    "this line is indented differently from the ones that it belongs to"
}
