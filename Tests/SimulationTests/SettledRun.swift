// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker
import Testing

/// One run of the built `settled`: its output and its exit code.
struct SettledRun {
  /// The exit code; -1 after a signal or more than a minute.
  let code: Int32
  let output: String
  let errors: String

  /// Runs the program in a temporary folder with `files`.
  init(
    _ arguments: [String],
    input: String = "",
    files: [String: String] = [:],
    environment: [String: String]? = nil
  ) throws {
    let folder = try TemporaryFolder.make("settled-run")
    let inner = Set(files.keys.compactMap { $0.split(separator: "/").dropLast().first })
    defer {
      for name in inner { TemporaryFolder.remove("\(folder)/\(name)") }
      TemporaryFolder.remove(folder)
    }
    for name in inner { try #require(unsafe mkdir("\(folder)/\(name)", 0o700) == 0) }
    for (name, text) in files { try TextFile.write(text, to: "\(folder)/\(name)") }
    try TextFile.write(input, to: "\(folder)/input")
    let descriptor = unsafe open("\(folder)/input", O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let process = try SpawnedProcess(
      arguments: [BuiltProgram.path("settled")]
        + arguments.map { $0.hasPrefix("./") ? folder + $0.dropFirst(1) : $0 },
      environment: environment,
      input: descriptor,
      output: .file("\(folder)/output"),
      errors: .file("\(folder)/errors")
    )
    if case .exited(let code)? = process.wait() {
      self.code = code
    } else {
      process.signal(SIGKILL)
      code = -1
    }
    output = TextFile.read("\(folder)/output") ?? ""
    errors = (TextFile.read("\(folder)/errors") ?? "")
      .split(separator: folder, omittingEmptySubsequences: false).joined(separator: ".")
  }
}
