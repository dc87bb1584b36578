// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The output and the ending of a run of `settle`.
struct SettleProcess: Equatable {
  var code: Int32
  var output: String
  var errors: String

  /// Runs `settle` with pipes for its outputs and a clean environment.
  static func run(_ arguments: [String], environment: [String] = []) throws -> SettleProcess {
    let program = try folder() + "/settle"
    // Files rather than pipes, whose ends other children would hold open.
    let outputs = try makeFolder()
    let (output, errors) = ("\(outputs)/output", "\(outputs)/errors")
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    let flags = O_WRONLY | O_CREAT
    unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, flags, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, flags, 0o600)
    let words = CStrings([program] + arguments)
    let variables = CStrings(environment)
    var process = pid_t()
    let failure = unsafe posix_spawn(
      &process,
      program,
      &actions,
      nil,
      words.pointers,
      variables.pointers
    )
    guard failure == 0 else { throw SystemCallFailed(call: "posix_spawn \(program)") }
    var status: Int32 = 0
    guard unsafe waitpid(process, &status, 0) == process, status & 0x7F == 0 else {
      throw SystemCallFailed(call: "waitpid")
    }
    defer {
      unsafe unlink(output)
      unsafe unlink(errors)
      unsafe rmdir(outputs)
    }
    return unsafe SettleProcess(
      code: status >> 8 & 0xFF,
      output: readAll(open(output, O_RDONLY)),
      errors: readAll(open(errors, O_RDONLY))
    )
  }

  /// The folder that has the programs: where the test bundle is too.
  private static func folder() throws -> String {
    for line in readAll(unsafe open("/proc/self/maps", O_RDONLY)).split(separator: "\n") {
      guard let start = line.firstIndex(of: "/"), line.hasSuffix("PackageTests.xctest") else {
        continue
      }
      let parts = line[start...].split(separator: "/", omittingEmptySubsequences: false)
      return parts.dropLast().joined(separator: "/")
    }
    throw SystemCallFailed(call: "find the test bundle")
  }

  private static func readAll(_ descriptor: Int32) -> String {
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe read(descriptor, &chunk, chunk.count)
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }
}

/// Texts as C wants them, ended by a null pointer.
@safe private final class CStrings {
  private(set) var pointers: [UnsafeMutablePointer<CChar>?]

  init(_ texts: [String]) {
    unsafe pointers = texts.map { text in unsafe strdup(text) }
    unsafe pointers.append(nil)
  }

  deinit {
    for index in unsafe pointers.indices { unsafe free(pointers[index]) }
  }
}
