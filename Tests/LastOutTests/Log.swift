// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// A thread-safe log of events, in order.
final class Log: Sendable {
  private let entries = Locked<[String]>([])

  var lines: [String] { entries.withLock { $0 } }

  func callAsFunction(_ line: String) {
    entries.withLock { $0.append(line) }
  }
}

/// Something whose end can be seen from outside.
final class Captured: Sendable {
  func use() {}
}
