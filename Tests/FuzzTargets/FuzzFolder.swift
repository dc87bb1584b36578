// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// The folder for files of targets that read files; the runner removes it.
enum FuzzFolder {
  static let path: String = {
    let path = (Environment["TMPDIR"] ?? "/tmp") + "/settle-fuzz-\(getpid())"
    guard unsafe mkdir(path, 0o700) == 0 else { fatalError("\(path) cannot be created") }
    return path
  }()

  /// Writes a file once and returns its path.
  static func file(_ name: String, _ content: String) -> String {
    let file = path + "/" + name
    if unsafe access(file, F_OK) != 0 { write(Array(content.utf8), to: file) }
    return file
  }

  static func write(_ bytes: [UInt8], to path: String) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(descriptor) }
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      fatalError("\(path) cannot be written")
    }
  }

  static func read(_ path: String) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY)
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
    return Array(bytes.prefix(max(0, count)))
  }
}
