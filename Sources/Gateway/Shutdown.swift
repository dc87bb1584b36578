// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The gateway's way out: what was sent since it began, what was not, and until when it may take.
struct Shutdown {
  enum Stage {
    /// Commands and routed messages leave and are acknowledged.
    case draining
    /// The last targets and the status are told.
    case parting
  }

  var stage = Stage.draining
  /// When waiting ends.
  var deadline: Moment?
  let acknowledgedBefore: UInt64
  let completion: (ShutdownReport) -> Void
  var report = ShutdownReport(sent: 0, unsent: [])
}

/// What became of everything that was pending at shutdown.
package struct ShutdownReport: Hashable, Sendable {
  /// Values acknowledged by the broker since the shutdown began.
  package var sent: Int
  /// Keys and topics whose last value was not.
  package var unsent: [String]

  /// `N sent`, or `N sent, M not sent: keys…`.
  package var description: String {
    unsent.isEmpty
      ? "\(sent) sent"
      : "\(sent) sent, \(unsent.count) not sent: \(unsent.joined(separator: " "))"
  }

  /// 0 if everything was sent, else 1.
  package var exitCode: Int32 { unsent.isEmpty ? 0 : 1 }
}
