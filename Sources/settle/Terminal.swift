// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc

/// Standard output and standard error, without a buffer: what is printed is out.
enum Terminal {
  enum Color: String {
    case green = "32"
    case yellow = "33"
    case red = "31"
    case cyan = "36"
    case faint = "2"
    case bold = "1"
  }

  /// Whether a person reads standard output.
  static let isInteractive = isatty(STDOUT_FILENO) == 1

  /// Whether standard output takes colours: a terminal, and `NO_COLOR` does not forbid it.
  static let hasColor =
    isInteractive && (SocketPath.environment("NO_COLOR") ?? "").isEmpty
    && SocketPath.environment("TERM") != "dumb"

  /// Prints a result.
  static func print(_ line: String) {
    write(Array((line + "\n").utf8), to: STDOUT_FILENO)
  }

  /// Prints a result that is bytes already.
  static func print(_ bytes: [UInt8]) {
    write(bytes + [0x0A], to: STDOUT_FILENO)
  }

  /// Says something that is no result, behind the program's name.
  static func complain(_ message: String, as program: String = "settle") {
    write(Array("\(program): \(visible(message, keepingLines: true))\n".utf8), to: STDERR_FILENO)
  }

  static func colored(_ text: String, _ color: Color?) -> String {
    guard hasColor, let color else { return text }
    return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
  }

  /// `text` with its control characters escaped, so that nothing steers the terminal.
  static func visible(_ text: String, keepingLines: Bool = false) -> String {
    let isPlain = text.unicodeScalars.allSatisfy { !isControl($0, keepingLines) }
    if isPlain { return text }
    return text.unicodeScalars.map {
      isControl($0, keepingLines) ? $0.escaped(asASCII: true) : String($0)
    }.joined()
  }

  private static func isControl(_ scalar: Unicode.Scalar, _ keepingLines: Bool) -> Bool {
    if keepingLines, scalar == "\n" { return false }
    return scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
  }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) {
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes[written...].withUnsafeBytes { buffer in
        unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
      }
      if count >= 0 {
        written += count
      } else if errno != EINTR {
        exit(ExitCode.failed.rawValue)  // A full disk, or nobody reads any more.
      }
    }
  }
}
