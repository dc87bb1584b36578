// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker

/// Reads lines from a descriptor: a new pipe, or a socket.
final class LineReader {
  /// The end to write to; -1 once closed.
  private(set) var writer: Int32 = -1
  private(set) var lines: [String] = []
  private(set) var isAtEnd = false
  private let reader: Int32
  private var rest: [UInt8] = []

  /// What has come of a line that is not whole.
  var unfinished: String { String(decoding: rest, as: UTF8.self) }

  /// Makes a pipe.
  init() throws {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else {
      throw GatewayProcess.Failure(description: "pipe: \(errno)")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    reader = ends[0]
    writer = ends[1]
  }

  /// Reads from a descriptor that it owns from now on.
  init(_ descriptor: Int32) {
    reader = descriptor
  }

  deinit {
    closeWriter()
    close(reader)
  }

  func closeWriter() {
    if writer >= 0 { close(writer) }
    writer = -1
  }

  /// Takes what is there without waiting.
  func readAvailable() {
    while readMore(milliseconds: 0) {}
  }

  /// Reads until `find` has found what it looks for; it is asked after each arrival.
  func waitFor<Result>(
    within limit: Duration,
    _ find: ([String]) -> Result?
  ) -> Result? {
    var wait = Wait(within: limit)
    while true {
      if let found = find(lines) { return found }
      guard !isAtEnd, let left = wait.remaining(lines.count + rest.count) else { return nil }
      readMore(milliseconds: Int32(left / .milliseconds(1)) + 1)
    }
  }

  /// Whether something came.
  @discardableResult
  private func readMore(milliseconds: Int32) -> Bool {
    guard !isAtEnd else { return false }
    var request = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&request, 1, milliseconds) > 0 else { return false }
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    let count = unsafe read(reader, &chunk, chunk.count)
    guard count > 0 else {
      isAtEnd = true
      return false
    }
    rest += chunk[..<count]
    while let end = rest.firstIndex(of: 0x0A) {
      lines.append(String(decoding: rest[..<end], as: UTF8.self))
      rest.removeSubrange(...end)
    }
    return true
  }
}
