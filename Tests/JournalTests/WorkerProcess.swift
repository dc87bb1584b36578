// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

/// A running `JournalWorker`.
struct WorkerProcess {
  private let process: pid_t

  /// Starts it; with `folder`, everything that it does to the files there is recorded in `record`.
  init(_ arguments: [String], recording folder: String? = nil, to record: String = "") throws {
    let program = try Self.programs() + "/JournalWorker"
    var words = unsafe ([program] + arguments).map { unsafe strdup($0) }
    unsafe words.append(nil)
    defer { for place in unsafe words.indices { unsafe free(words[place]) } }
    var variables = unsafe folder.map {
      unsafe [strdup("RECORD_FOLDER=\($0)"), strdup("RECORD_LOG=\(record)")]
    }
    unsafe variables?.append(nil)
    defer { for place in unsafe variables?.indices ?? 0..<0 { unsafe free(variables?[place]) } }
    var process = pid_t()
    let code =
      if unsafe variables != nil {
        unsafe posix_spawn(&process, program, nil, nil, words, variables)
      } else {
        unsafe posix_spawn(&process, program, nil, nil, words, environ)
      }
    try #require(code == 0, "\(program) could not be started")
    self.process = process
  }

  /// Kills it once a file has grown to a size.
  func kill(afterBytes size: Int, of path: String) throws {
    var deadline = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
    deadline.tv_sec += 60
    var status = stat()
    while unsafe stat(path, &status) != 0 || status.st_size < size {
      var now = timespec()
      unsafe clock_gettime(CLOCK_MONOTONIC, &now)
      try #require(now.tv_sec < deadline.tv_sec, "the process wrote nothing")
      poll(nil, 0, 1)
    }
    Glibc.kill(process, SIGKILL)
    var end: Int32 = 0
    try #require(unsafe waitpid(process, &end, 0) == process)
    try #require(end & 0x7F == SIGKILL)
  }

  /// The folder that has the programs: where the test bundle is too.
  private static func programs() throws -> String {
    let maps = String(decoding: Bytes.read("/proc/self/maps"), as: UTF8.self)
    let line = try #require(maps.split(separator: "\n").first { $0.hasSuffix("Tests.xctest") })
    let path = line.drop { $0 != "/" }.split(separator: "/", omittingEmptySubsequences: false)
    return path.dropLast().joined(separator: "/")
  }
}
