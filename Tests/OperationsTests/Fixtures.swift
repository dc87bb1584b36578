// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Collects the calls of handlers, in order; for one thread.
final class Recorder<Element> {
  private(set) var values: [Element] = []
  func add(_ value: Element) { values.append(value) }
  func removeAll() { values = [] }
}

/// A pipe, closed when it is released.
final class Pipe {
  let reader: Int32
  let writer: Int32
  private var open: [Int32]

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw SetUpFailure(code: errno) }
    reader = ends[0]
    writer = ends[1]
    open = ends
  }

  deinit { closeBoth() }

  func put(_ text: String) {
    _ = unsafe write(writer, text, text.utf8.count)
  }

  func closeReader() {
    if let place = open.firstIndex(of: reader) { close(open.remove(at: place)) }
  }

  func closeBoth() {
    for end in open { close(end) }
    open = []
  }
}

/// Two connected sockets, closed when they go.
final class SocketPair {
  let left: Int32
  let right: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
      throw SetUpFailure(code: errno)
    }
    left = ends[0]
    right = ends[1]
  }

  deinit {
    close(left)
    close(right)
  }

  func put(_ text: String) {
    _ = unsafe write(right, text, text.utf8.count)
  }
}

struct SetUpFailure: Error {
  let code: Int32
}

/// How many descriptors this process has open.
func openDescriptors() -> Int {
  guard let directory = unsafe opendir("/proc/self/fd") else { return -1 }
  defer { unsafe closedir(directory) }
  var count = 0
  while unsafe readdir(directory) != nil { count += 1 }
  return count
}
