// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Reads files to their end.
package enum WholeFile {
  /// The bytes that an open file has left; `nil`, with `errno` set, if reading fails.
  ///
  /// A longer file than `limit` is not read to its end; the result has more bytes than that.
  package static func read(_ descriptor: Int32, limit: Int = .max) -> [UInt8]? {
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count <= limit {
      let count = unsafe Glibc.read(descriptor, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if count == 0 { break }
      bytes += part[..<count]
    }
    return bytes
  }
}
