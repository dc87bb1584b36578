// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A pipe that wakes whoever polls its reading end.
final class Bell: Sendable {
  let reader: Int32
  private let writer: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw TestBrokerError("pipe: \(errno)") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    reader = ends[0]
    writer = ends[1]
  }

  deinit {
    close(reader)
    close(writer)
  }

  /// A full pipe has been heard already.
  func ring() { _ = unsafe write(writer, "!", 1) }

  func silence() {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while unsafe read(reader, &bytes, bytes.count) > 0 {}
  }
}
