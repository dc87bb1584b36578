// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker
import Testing

/// An empty folder and the built programs; it is removed with this object.
final class SetupHome {
  let folder: String
  /// Where `settle init` writes.
  var target: String { folder + "/home" }

  init() throws { folder = try TemporaryFolder.make("settle-setup") }

  deinit {
    TemporaryFolder.remove(folder)
  }

  /// Runs `settled init` to its end, in the folder and without a terminal.
  func initialise(
    _ arguments: [String],
    variables: [String] = [],
    into folder: String? = nil
  ) throws -> ProgramRun {
    try run(
      ["env", "-u", "SETTLE_MQTT_URL"] + variables + [BuiltProgram.path("settled"), "init"]
        + ["--config", folder ?? target] + arguments
    )
  }

  /// Runs `settled init` at a terminal at which these lines are typed.
  func initialise(typing lines: [String], _ arguments: [String] = []) throws -> ProgramRun {
    let command = ([BuiltProgram.path("settled"), "init", "--config", target] + arguments)
      .joined(separator: " ")
    let typed = lines.map { $0 + #"\n"# }.joined()
    let script = "printf '\(typed)' | script -qec '\(command)' /dev/null"
    return try run(["env", "-u", "SETTLE_MQTT_URL", "/bin/sh", "-c", script])
  }

  func run(_ arguments: [String]) throws -> ProgramRun { try ProgramRun(arguments, in: folder) }

  private func unlink(_ path: String) { _ = unsafe Glibc.unlink(path) }

  /// The content of a file that `settle init` has written.
  func file(_ name: String) -> String? { TextFile.read("\(target)/\(name)") }

  /// The permission bits of a file; `nil` if there is none.
  func mode(_ name: String) -> UInt32? {
    var status = stat()
    return unsafe lstat("\(target)/\(name)", &status) == 0 ? status.st_mode & 0o777 : nil
  }

  /// Whether the folder to write exists.
  var isWritten: Bool { unsafe access(target, F_OK) == 0 }
}
