// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A server in a process of its own, which dies with this process, however that ends.
package final class GuardedProcess {
  private let process: SpawnedProcess
  /// Its end of file signals the guard that this process has ended.
  private let lifeline: Lifeline

  /// Starts a program; its output is appended to `log`.
  package init(_ arguments: [String], log: String) throws {
    lifeline = try Lifeline()
    // The shell becomes the server; the guard beside it waits for the end of this process. In a
    // session of its own, Ctrl-C in the terminal reaches this process and not the server; the guard
    // stays when the terminal goes.
    let script = """
      exec 3<&0
      (trap '' HUP INT TERM; read line <&3 || kill -9 $$) &
      exec setsid "$@" </dev/null 3<&-
      """
    process = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh"] + arguments,
      input: lifeline.reader,
      output: .file(log),
      errors: .file(log)
    )
  }

  package var processID: Int32 { process.processID }

  package func signal(_ number: Int32) { process.signal(number) }

  /// Waits for the end; `nil` if the process still runs.
  package func wait(milliseconds: Int32) -> SpawnedProcess.Ending? {
    let ending = process.wait(milliseconds: milliseconds)
    if ending != nil { lifeline.release() }
    return ending
  }

  /// Ends the process with a signal and waits for that.
  package func end(signal number: Int32 = SIGTERM) {
    process.signal(number)
    process.signal(SIGCONT)
    guard wait(milliseconds: 5000) == nil else { return }
    process.signal(SIGKILL)
    _ = wait(milliseconds: 5000)
    lifeline.release()
  }
}

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
