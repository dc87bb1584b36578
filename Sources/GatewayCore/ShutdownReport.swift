// Settle
// SPDX-License-Identifier: Apache-2.0

/// The outcome of everything that was pending at shutdown.
package struct ShutdownReport: Hashable, Sendable {
  /// Values acknowledged by the broker since the shutdown began.
  package var sent: Int
  /// Keys and topics whose last value was not.
  package var unsent: [String]
  /// Those of ``unsent`` that the journal keeps for the next start.
  package var kept: [String] = []
  /// A second request ended the shutdown early.
  package var isHurried = false

  package init(sent: Int, unsent: [String], kept: [String] = []) {
    self.sent = sent
    self.unsent = unsent
    self.kept = kept
  }

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
