// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// A child process and its ending.
///
/// Signals use a descriptor of the process, so they cannot hit another process that reuses its
/// number. Releasing the object does not end the process.
package final class SpawnedProcess {
  /// The destination of a child's output.
  package enum Output: Hashable, Sendable {
    case inherited
    case discarded
    /// A file, created or appended to.
    case file(String)
    /// A descriptor of this process, which stays open here.
    case descriptor(Int32)
  }

  /// How a process ended.
  package enum Ending: Hashable, Sendable {
    case exited(code: Int32)
    case signalled(number: Int32)
  }

  package let processID: Int32
  /// Becomes readable when the process has ended.
  let descriptor: Int32
  /// How it ended; `nil` while it runs or before the first check.
  package private(set) var ending: Ending?
  /// Whether the kernel wrote a core dump when it ended.
  package private(set) var leftCoreDump = false

  /// Starts a program with default signal handling and only the three standard descriptors.
  ///
  /// - Parameters:
  ///   - arguments: The program, looked up in `PATH` if without a slash, and its arguments.
  ///   - environment: Variables; this process's own if `nil`.
  ///   - input: A descriptor for standard input; default: empty input.
  ///   - output: The destination of standard output.
  ///   - errors: The destination of standard error.
  /// - Throws: If the program is missing or cannot be executed; the error names it.
  package init(
    arguments: [String],
    environment: [String: String]? = nil,
    input: Int32? = nil,
    output: Output = .inherited,
    errors: Output = .inherited
  ) throws(OperationsError) {
    var files = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&files)
    defer { unsafe posix_spawn_file_actions_destroy(&files) }
    if let input {
      unsafe posix_spawn_file_actions_adddup2(&files, input, 0)
    } else {
      unsafe posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0)
    }
    for (target, place) in [(Int32(1), output), (2, errors)] {
      switch place {
      case .inherited: break
      case .discarded:
        unsafe posix_spawn_file_actions_addopen(&files, target, "/dev/null", O_WRONLY, 0)
      case .file(let path):
        unsafe posix_spawn_file_actions_addopen(
          &files,
          target,
          path,
          O_WRONLY | O_CREAT | O_APPEND,
          0o644
        )
      case .descriptor(let source):
        unsafe posix_spawn_file_actions_adddup2(&files, source, target)
      }
    }
    unsafe settle_spawn_close_from(&files, 3)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe posix_spawnattr_setsigmask(&attributes, &signals)
    unsafe sigfillset(&signals)
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)
    )

    let program = arguments.first ?? ""
    var process = pid_t()
    func spawn(
      _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>,
      _ environment: UnsafePointer<UnsafeMutablePointer<CChar>?>
    ) -> Int32 {
      unsafe posix_spawnp(&process, program, &files, &attributes, arguments, environment)
    }
    let code = unsafe CStringArray.with(arguments) { arguments in
      guard let environment else { return unsafe spawn(arguments, environ) }
      return unsafe CStringArray.with(environment.map { "\($0)=\($1)" }) { environment in
        unsafe spawn(arguments, environment)
      }
    }
    guard code == 0 else {
      throw OperationsError(call: "posix_spawn \(program)", code: code)
    }
    processID = process
    descriptor = settle_pidfd_open(process)
    guard descriptor >= 0 else {
      let reason = errno
      kill(process, SIGKILL)
      waitpid(process, nil, 0)
      throw OperationsError(call: "pidfd_open", code: reason)
    }
  }

  deinit {
    // A process that has ended stays in the kernel's table until it is waited for.
    if descriptor >= 0, ending == nil { wait(milliseconds: 0) }
    if descriptor >= 0 { close(descriptor) }
  }

  /// Sends a signal; has no effect once the process has ended.
  package func signal(_ number: Int32) {
    _ = settle_pidfd_send_signal(descriptor, number)
  }

  /// Waits until the process has ended or `milliseconds` have passed; -1 for no limit.
  @discardableResult
  package func wait(milliseconds: Int32) -> Ending? {
    if ending == nil {
      var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&request, 1, milliseconds) > 0 else { return nil }
      var status: Int32 = 0
      guard unsafe waitpid(processID, &status, WNOHANG) == processID else { return nil }
      let number = status & 0x7F
      leftCoreDump = number != 0 && status & 0x80 != 0
      ending = number == 0 ? .exited(code: status >> 8 & 0xFF) : .signalled(number: number)
    }
    return ending
  }
}

/// A null-terminated array of C strings.
private enum CStringArray {
  static func with<Result>(
    _ texts: [String],
    _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers: [UnsafeMutablePointer<CChar>?] = unsafe texts.map { unsafe strdup($0) }
    unsafe pointers.append(nil)
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeBufferPointer { buffer in
      guard let base = buffer.baseAddress else {
        preconditionFailure("An array with an element has an address.")
      }
      return unsafe body(base)
    }
  }
}
