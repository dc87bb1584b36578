// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Glibc
import Values

/// The properties of standard output, colors on it, and messages beside it.
enum Terminal {
  enum Color: String {
    case green = "32"
    case yellow = "33"
    case red = "31"
    case cyan = "36"
    case faint = "2"
    case bold = "1"
  }

  /// Whether standard output is a terminal.
  static let isInteractive = isatty(STDOUT_FILENO) == 1

  /// Whether standard output is a terminal with colors, and `NO_COLOR` is not set.
  static let hasColor =
    isInteractive && (SocketPath.environment("NO_COLOR") ?? "").isEmpty
    && SocketPath.environment("TERM") != "dumb"

  /// The columns of the terminal; `nil` where standard output is none, or does not report them.
  static var width: Int? {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
    return size.ws_col > 0 ? Int(size.ws_col) : nil
  }

  /// Writes a message to standard error, after the program's name.
  static func complain(_ message: String) {
    StandardError.write("settle: \(Excerpt.visible(message, keepingLines: true))")
  }

  static func colored(_ text: String, _ color: Color?) -> String {
    guard hasColor, let color else { return text }
    return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
  }
}
