// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How wide the terminal at standard output is.
enum TerminalSize {
  /// `nil` when standard output is no terminal or does not tell.
  static var columns: Int? {
    var size = winsize()
    let isKnown = unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
    return isKnown ? Int(size.ws_col) : nil
  }
}
