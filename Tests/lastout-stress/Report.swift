// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The counts and the failures of the threads.
final class Report: Sendable {
  private let counts = Locked((operations: 0, runs: 0, failures: 0))

  var operations: Int { counts.withLock { $0.operations } }
  var runs: Int { counts.withLock { $0.runs } }
  var failures: Int { counts.withLock { $0.failures } }

  func count(_ operations: Int) { counts.withLock { $0.operations += operations } }

  func ran() { counts.withLock { $0.runs += 1 } }

  func fail(_ what: String) {
    counts.withLock { $0.failures += 1 }
    print("wrong: \(what)")
  }
}
