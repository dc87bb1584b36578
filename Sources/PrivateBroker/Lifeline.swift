// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A pipe whose end of file tells a guard beside a child that this process is gone.
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

  /// Sends the guard home: the child has ended, and its number may soon be another's.
  package func release() {
    guard writer >= 0 else { return }
    _ = unsafe write(writer, "\n", 1)
    close(writer)
    writer = -1
  }
}
