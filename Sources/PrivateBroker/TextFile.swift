// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Small text files.
package enum TextFile {
  package static func write(_ text: String, to path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw PrivateBrokerError("\(path) cannot be written: \(errno)") }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      throw PrivateBrokerError("\(path) cannot be written: \(errno)")
    }
  }

  /// The whole text; `nil` if there is no such file.
  package static func read(_ path: String) -> String? {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += part[..<count]
    }
  }
}
