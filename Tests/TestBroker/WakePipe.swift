// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations

/// A pipe that wakes the thread that polls its reading end.
final class WakePipe: Sendable {
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

  /// A full pipe wakes the thread as well.
  func wake() { _ = unsafe write(writer, "!", 1) }

  func drain() {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while unsafe read(reader, &bytes, bytes.count) > 0 {}
  }

  /// Waits until `condition` holds, checked after each wake-up; for one thread at a time.
  func wait(within limit: Duration, until condition: () -> Bool) -> Bool {
    var wait = Wait(within: limit)
    var wakeUps = 0
    while true {
      if condition() { return true }
      guard let left = wait.remaining(wakeUps) else { return false }
      var request = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
      if unsafe poll(&request, 1, Int32(left / .milliseconds(1)) + 1) > 0 { wakeUps += 1 }
      drain()
    }
  }
}
