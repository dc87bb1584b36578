// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Results, without a buffer: what is written is out.
package enum StandardOutput {
  /// Writes one line.
  package static func print(_ line: String) { write(Array((line + "\n").utf8)) }

  /// Writes one line that is bytes already.
  package static func print(bytes: [UInt8]) { write(bytes + [0x0A]) }

  /// Writes text as it is.
  package static func show(_ text: String) { write(Array(text.utf8)) }

  /// Writes what is bytes already; ends the process when nobody can take it.
  package static func write(_ bytes: [UInt8]) {
    guard Descriptor.write(bytes, to: STDOUT_FILENO) else {
      exit(ExitCode.failed.rawValue)  // A full disk, or nobody reads any more.
    }
  }
}

/// What is said to a person beside the results.
package enum StandardError {
  /// Writes one line; nothing happens when nobody can take it.
  package static func write(_ line: String) {
    show(line + "\n")
  }

  /// Writes text as it is, such as a line that is written over and over.
  package static func show(_ text: String) {
    _ = Descriptor.write(Array(text.utf8), to: STDERR_FILENO)
  }
}

private enum Descriptor {
  /// Writes all of `bytes`; `false` if that is not possible.
  static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes[written...].withUnsafeBytes { buffer in
        unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
      }
      if count >= 0 {
        written += count
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}
