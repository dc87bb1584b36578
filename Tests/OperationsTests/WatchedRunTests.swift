// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker
import Testing

/// `.ci/watch-tests`, which runs all tests: it ends those that hang, and names them.
@Suite(.blocking) struct WatchedRunTests {
  private static let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

  /// What the runner has told of three tests, in short.
  private static let events = """
    {"kind":"test","payload":{"kind":"suite","id":"S"}}
    {"kind":"test","payload":{"kind":"function","id":"S/1","name":"f()","displayName":"quick"}}
    {"kind":"test","payload":{"kind":"function","id":"S/2","name":"slow()"}}
    {"kind":"event","payload":{"kind":"runStarted"}}
    {"kind":"event","payload":{"kind":"testStarted","testID":"S"}}
    {"kind":"event","payload":{"kind":"testStarted","testID":"S/1"}}
    {"kind":"event","payload":{"kind":"testStarted","testID":"S/2"}}
    {"kind":"event","payload":{"kind":"testEnded","testID":"S/1"}}

    """

  private func run(
    _ script: String,
    quiet: Int = 600,
    limit: Double = 600
  ) throws -> (ending: SpawnedProcess.Ending?, output: String) {
    let folder = try TemporaryFolder.make("settle-watched")
    defer { TemporaryFolder.remove(folder) }
    try TextFile.write(Self.events, to: folder + "/events")
    let process = try SpawnedProcess(
      arguments: [
        "env", "TESTS_QUIET=\(quiet)", "TESTS_LIMIT=\(limit)",
        "/\(Self.root)/.ci/watch-tests", folder + "/events", "/bin/sh", "-c", script,
      ],
      output: .file(folder + "/output"),
      errors: .file(folder + "/output")
    )
    let ending = process.wait()
    return (ending, TextFile.read(folder + "/output") ?? "")
  }

  @Test func `a run that ends keeps its output and its exit code`() throws {
    let (ending, output) = try run("echo one; echo two >&2; exit 3")
    #expect(ending == .exited(code: 3))
    #expect(output == "one\ntwo\n")
  }

  @Test func `a run in which nothing happens any more is ended, and names its tests`() throws {
    let (ending, output) = try run("sleep 600", quiet: 1)
    #expect(ending == .exited(code: 128 + SIGTERM))
    #expect(output.hasPrefix("error: no test has ended for 1 s"))
    #expect(output.hasSuffix("; in progress:\nerror:   slow()\n"))
  }

  @Test func `a run that other programs keep from the processor does not hang`() throws {
    let others = try SpawnedProcess(
      arguments: ["taskset", "-c", "0", "/bin/sh", "-c", "while :; do :; done"]
    )
    defer {
      others.signal(SIGKILL)
      _ = others.wait()
    }

    let count = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done"
    let (ending, output) = try run("taskset -c 0 chrt --idle 0 sh -c '\(count)'", quiet: 2)
    #expect(ending == .exited(code: 0))
    #expect(output.isEmpty)
  }

  // A short limit: beside others that work, it passes in proportion to the processor time it gets.
  @Test func `a run that works for ever is ended at its limit`() throws {
    let (ending, output) = try run("while :; do :; done", limit: 0.1)
    #expect(ending == .exited(code: 128 + SIGTERM))
    #expect(output.hasPrefix("error: the tests have taken more than 0.1 s"))
    #expect(output.hasSuffix("; in progress:\nerror:   slow()\n"))
  }
}
