// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker

/// A running `settle`, as started by a user's shell.
final class SettleRun {
  /// One line of a change that is waited for.
  struct Line: Equatable {
    var phase: String
    var value: String
    var reason: String

    /// Of tab separated columns: time, key, phase, value, collapsed, source, reason.
    init?(_ text: Substring) {
      let fields = text.split(separator: "\t").map(String.init)
      guard fields.count == 7 else { return nil }
      (phase, value, reason) = (fields[2], fields[3], fields[6])
    }
  }

  private let process: SpawnedProcess
  private let folder: String

  /// Starts `settle` with arguments, talking to the gateway at `socketPath`; returns at once.
  init(_ arguments: [String], socketPath: String) throws {
    folder = try TemporaryFolder.make("settle-run")
    process = try SpawnedProcess(
      arguments: [BuiltProgram.path("settle")] + arguments + ["--socket", socketPath],
      output: .file(folder + "/output"),
      errors: .file(folder + "/errors")
    )
  }

  deinit {
    process.signal(SIGKILL)
    process.wait(milliseconds: 5000)
    TemporaryFolder.remove(folder)
  }

  /// Waits for the end; `nil` if it does not come in time.
  func waitForExit(within limit: Duration = .patience) -> Int32? {
    guard case .exited(let code) = process.wait(within: limit) else { return nil }
    return code
  }

  var output: String { TextFile.read(folder + "/output") ?? "" }
  var errors: String { TextFile.read(folder + "/errors") ?? "" }
  var lines: [Line] { output.split(separator: "\n").compactMap { Line($0) } }
}
