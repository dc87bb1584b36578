// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads a whole file.
enum InputFile {
  /// The bytes of `path`, `-` being standard input; `nil`, with `errno` set, if that fails.
  static func read(_ path: String) -> [UInt8]? {
    let descriptor =
      path == "-" ? STDIN_FILENO : unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { if descriptor != STDIN_FILENO { close(descriptor) } }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      if count == 0 { return bytes }
      if count < 0 {
        if errno == EINTR { continue }
        return nil
      }
      bytes += part[..<count]
    }
  }
}
