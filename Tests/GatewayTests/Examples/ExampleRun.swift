// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker

/// A running command line in a house, in its own shell and session.
///
/// It ends with this object, and with this process, however that ends.
final class ExampleRun {
  private let process: SpawnedProcess
  private let lifeline: Lifeline
  private let outputFile: String
  private let errorFile: String

  /// Starts the line and returns at once; its standard input is a file of changes.
  ///
  /// `shell` is a command that takes the line as its last argument.
  init(_ line: String, in house: ExampleHouse, shell: String = "bash -c") throws {
    lifeline = try Lifeline()
    let place = try TemporaryFolder.make(
      house.folder.split(separator: "/").last.map(String.init) ?? ""
    )
    outputFile = place + "/output"
    errorFile = place + "/errors"
    try TextFile.write("", to: outputFile)
    try TextFile.write("", to: errorFile)
    // Files of changes have any name; those that are there keep their content.
    for word in line.split(whereSeparator: { $0.isWhitespace || "<>|'\"".contains($0) })
    where word.hasSuffix(".ndjson") && TextFile.read("\(house.folder)/\(word)") == nil {
      try TextFile.write(ExampleHouse.changes, to: "\(house.folder)/\(word)")
    }
    let script = """
      exec 3<&0
      (read line <&3 || kill -9 -- -$$) >/dev/null 2>&1 &
      cd "$1" || exit 99
      exec setsid \(shell) "$2" <changes.ndjson 3<&-
      """
    process = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh", house.folder, house.localized(line)],
      environment: house.environment,
      input: lifeline.reader,
      output: .file(outputFile),
      errors: .file(errorFile)
    )
  }

  deinit {
    signal(SIGKILL)
    process.wait(milliseconds: 5000)
    lifeline.release()
    TemporaryFolder.remove(outputFile.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" })
  }

  var output: String { TextFile.read(outputFile) ?? "" }
  var errors: String { TextFile.read(errorFile) ?? "" }

  /// Sends a signal to the line and all that it started, as Ctrl-C does.
  func signal(_ number: Int32) {
    // Not yet waited for, so the number is still that of this session.
    if process.ending == nil { kill(-process.processID, number) }
  }

  /// Waits for the end: its exit code, or that of a shell whose command a signal ended; `nil` if it
  /// does not come in time.
  func waitForExit(within limit: Duration = .patience) -> Int32? {
    switch process.wait(within: limit) {
    case .exited(let code): code
    case .signalled(let number): 128 + number
    case nil: nil
    }
  }

  /// Waits until what it has written satisfies `condition`, or it has ended.
  func waitFor(
    within limit: Duration = .patience,
    _ condition: (_ output: String, _ errors: String) -> Bool
  ) -> Bool {
    Patience.follow(process.processID)
    var wait = Wait(within: limit)
    while !condition(output, errors) {
      // Also the pause between two looks.
      if process.wait(milliseconds: 10) != nil { return condition(output, errors) }
      if wait.remaining(output.utf8.count + errors.utf8.count) == nil { return false }
    }
    return true
  }
}
