// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// Reads a whole file.
enum InputFile {
  /// The bytes of `path`, `-` being standard input; `nil`, with `errno` set, if that fails.
  static func read(_ path: String) -> [UInt8]? {
    let descriptor =
      path == "-" ? STDIN_FILENO : unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    return WholeFile.read(descriptor)
  }
}
