// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A pipe whose end of file signals the guard of a child that this process has ended.
package final class Lifeline {
  package let reader: Int32
  private var writer: Int32

  package init() throws {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw PrivateBrokerError("pipe: \(errno)") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    reader = ends[0]
    writer = ends[1]
  }

  deinit {
    release()
    close(reader)
  }

  /// Ends the guard: the child has ended, and another process may soon get its number.
  package func release() {
    guard writer >= 0 else { return }
    _ = unsafe write(writer, "\n", 1)
    close(writer)
    writer = -1
  }
}
