// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Standard output and standard error, without a buffer: what is written is out.
enum StandardStreams {
  /// Writes a result as one line.
  static func print(_ line: String) {
    write(Array((line + "\n").utf8), to: STDOUT_FILENO)
  }

  /// Writes results that are bytes already.
  static func write(_ bytes: [UInt8]) {
    write(bytes, to: STDOUT_FILENO)
  }

  /// Says something that is no result, behind the command's name.
  static func complain(_ message: String, as command: String = "settle") {
    write(Array("\(command): \(message)\n".utf8), to: STDERR_FILENO)
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
