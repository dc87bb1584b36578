// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The gateway's way out: what was sent since it began, what was not, and until when it may take.
struct Shutdown {
  enum Stage {
    /// Commands and routed messages leave and are acknowledged.
    case draining
    /// The journal writes what is left to write, and is closed.
    case keeping
    /// What became of the commands, the last targets and the status are told.
    case parting
  }

  var stage = Stage.draining
  /// When the stage ends, at the latest.
  var deadline: Moment?
  /// When waiting for the broker ends, from `shutdown.timeout`.
  let limit: Moment
  /// What was left to tell when that was looked at last.
  var untold = 0
  let acknowledgedBefore: UInt64
  let completion: (ShutdownReport) -> Void
  var report = ShutdownReport(sent: 0, unsent: [])
  /// How long the journal may take to write and close.
  static let keepingLimit = Duration.seconds(2)
  /// How long telling the rest may take without getting further.
  static let tellingLimit = Duration.seconds(1)

  init(
    limit: Moment,
    acknowledgedBefore: UInt64,
    completion: @escaping (ShutdownReport) -> Void
  ) {
    deadline = limit
    self.limit = limit
    self.acknowledgedBefore = acknowledgedBefore
    self.completion = completion
  }
}

/// What became of everything that was pending at shutdown.
package struct ShutdownReport: Hashable, Sendable {
  /// Values acknowledged by the broker since the shutdown began.
  package var sent: Int
  /// Keys and topics whose last value was not.
  package var unsent: [String]
  /// Those of ``unsent`` that the journal keeps for the next start.
  package var kept: [String] = []
  /// It was asked for a second time, and did not wait.
  package var isHurried = false

  /// `N sent`, or `N sent, M not sent: keys…`, or `…; K kept in the journal: keys…`.
  package var description: String {
    guard !unsent.isEmpty else { return "\(sent) sent" }
    let report = "\(sent) sent, \(unsent.count) not sent: \(unsent.joined(separator: " "))"
    guard !kept.isEmpty else { return report }
    return "\(report); \(kept.count) kept in the journal: \(kept.joined(separator: " "))"
  }

  /// 0 if everything was sent, or is kept; 1 if not, and when it did not wait.
  package var exitCode: Int32 { kept.count == unsent.count && !isHurried ? 0 : 1 }
}
