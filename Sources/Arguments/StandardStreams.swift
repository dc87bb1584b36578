// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Standard output, for results; unbuffered.
package enum StandardOutput {
  /// Writes one line.
  package static func print(_ line: String) { write(Array((line + "\n").utf8)) }

  /// Writes one line of bytes.
  package static func print(bytes: [UInt8]) { write(bytes + [0x0A]) }

  /// Writes text without a line break.
  package static func show(_ text: String) { write(Array(text.utf8)) }

  /// Writes bytes; ends the process if that fails.
  package static func write(_ bytes: [UInt8]) {
    guard Descriptor.write(bytes, to: STDOUT_FILENO) else {
      exit(ExitCode.failed.rawValue)  // The disk is full, or the reader has closed the pipe.
    }
  }
}

/// Standard error, for messages beside the results.
package enum StandardError {
  /// Writes one line; a failure is ignored.
  package static func write(_ line: String) {
    show(line + "\n")
  }

  /// Writes text without a line break, such as a progress line.
  package static func show(_ text: String) {
    _ = Descriptor.write(Array(text.utf8), to: STDERR_FILENO)
  }
}

/// The three standard streams together.
package enum StandardStreams {
  /// Opens `/dev/null` in place of each standard stream that is closed.
  ///
  /// Otherwise the next descriptor, such as a socket, would get its number and receive what is
  /// written to it. Call it before anything else opens a descriptor.
  package static func openMissing() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest free number is the missing one.
      _ = unsafe open("/dev/null", O_RDWR)
    }
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
