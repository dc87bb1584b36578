// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc

/// Questions at the terminal, on standard error, and their answers.
enum InitDialog {
  /// Whether somebody can answer.
  static var isPossible: Bool { isatty(STDIN_FILENO) == 1 }

  /// The answer to a question, without blanks around it; `nil` at the end of the input.
  static func answer(_ question: String) -> String? {
    StandardError.show(question)
    guard let line = readLine() else {
      StandardError.write("")
      return nil
    }
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    return String(line.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
  }

  /// An answer that is not shown while it is typed; `nil` at the end of the input.
  static func secret(_ question: String) -> String? {
    StandardError.show(question)
    var mode = termios()
    let isKnown = unsafe tcgetattr(STDIN_FILENO, &mode) == 0
    var silent = mode
    silent.c_lflag &= ~tcflag_t(ECHO)
    if isKnown { unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &silent) }
    let line = readLine()
    if isKnown { unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) }
    StandardError.write("")
    return line
  }

  /// Whether the answer is yes, which an empty one is.
  static func confirms(_ question: String) -> Bool {
    while let text = answer("\(question) [Y/n] ")?.lowercased() {
      if ["", "y", "yes"].contains(text) { return true }
      if ["n", "no"].contains(text) { return false }
    }
    return false
  }
}
