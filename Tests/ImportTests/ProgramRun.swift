// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker

/// The result of one run of a program.
struct ProgramRun {
  let code: Int32
  let output: String
  let errors: String

  /// Runs a program to its end; what it writes is kept in `folder` meanwhile, in files with this
  /// number.
  init(_ arguments: [String], in folder: String, number: Int = 1) throws {
    let (output, errors) = ("\(folder)/output-\(number)", "\(folder)/errors-\(number)")
    let process = try SpawnedProcess(
      arguments: arguments,
      output: .file(output),
      errors: .file(errors)
    )
    if case .exited(let ended)? = process.wait() {
      code = ended
    } else {
      code = -1
      process.signal(SIGKILL)
    }
    self.output = TextFile.read(output) ?? ""
    self.errors = TextFile.read(errors) ?? ""
    for file in [output, errors] { unsafe unlink(file) }
  }
}
