// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
import LastOut

/// Writes lines to standard error without waiting long for the reader.
///
/// A reader that hangs costs 50 ms once; then lines are dropped at once until it reads again, and
/// the next line reports how many were lost.
final class StandardErrorSink: Sendable {
  static let shared = StandardErrorSink(descriptor: 2)

  /// Longer lines are truncated: a pipe that polls as writable accepts this much without blocking.
  static let longestLine = 4096

  /// Whether standard error goes to systemd's journal.
  let isJournal: Bool
  private let descriptor: Int32
  private let dropped = Locked(0)

  init(descriptor: Int32) {
    self.descriptor = descriptor
    isJournal = Self.isJournal(descriptor)
  }

  func write(_ line: String) {
    // Locked while writing, so that two threads cannot mix their lines; the wait below is bounded.
    dropped.withLock { dropped in
      var text = line
      if dropped > 0 { text += " dropped_lines=\(dropped)" }
      dropped = put(text, patience: dropped > 0 ? 0 : 50) ? 0 : dropped + 1
    }
  }

  /// Writes one line; `false` if the reader did not accept it within `patience` milliseconds.
  private func put(_ line: String, patience: Int32) -> Bool {
    var bytes = Array(line.utf8.prefix(Self.longestLine - 1))
    bytes.append(UInt8(ascii: "\n"))
    var start = 0
    while start < bytes.count {
      var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      guard unsafe poll(&request, 1, patience) > 0, request.revents & Int16(POLLOUT) != 0 else {
        return false
      }
      let count = unsafe bytes[start...].withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
      }
      if count < 0 && errno != EINTR && errno != EAGAIN { return false }
      start += max(0, count)
    }
    return true
  }

  /// Whether a descriptor is the socket of systemd's journal.
  ///
  /// `JOURNAL_STREAM` has its device and inode. The variable is inherited, so it only counts if
  /// standard error still is that socket.
  private static func isJournal(_ descriptor: Int32) -> Bool {
    guard let variable = Environment["JOURNAL_STREAM"] else { return false }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return false }
    return variable == "\(status.st_dev):\(status.st_ino)"
  }
}
