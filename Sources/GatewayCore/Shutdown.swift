// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The phases of a shutdown, and when each ends.
struct Shutdown {
  enum Phase {
    /// Commands and routed messages are sent and acknowledged.
    case draining
    /// The journal writes what is left, and is closed.
    case storing
    /// The outcomes of commands, the last targets and the status are published.
    case reporting
    case ended
  }

  /// What the phases depend on.
  struct Situation {
    /// Whether the gateway's own broker is connected.
    var isConnected: Bool
    /// Whether anything has not been acknowledged, what cannot be sent included.
    var hasUnsent: Bool
    /// Whether everything that can be sent was sent and acknowledged.
    var hasDrained: Bool
    var hasStore: Bool
    var isStoreClosed: Bool
    /// Messages of the gateway's own that wait.
    var unpublished: Int
    /// Whether the host has nothing left to publish, and everything was acknowledged.
    var isIdle: Bool
  }

  enum Decision {
    case wait
    /// ``Phase/storing`` has begun.
    case store
    /// Make the report; ``beginReporting(_:isConnected:)`` follows.
    case report
    case end
  }

  private(set) var phase = Phase.draining
  /// When the phase ends at the latest.
  private(set) var deadline: Moment?
  /// When waiting for the broker ends, from `shutdown.timeout`.
  private let limit: Moment
  /// How many messages were left to publish when that was last checked.
  private var unpublished = 0
  /// Whether the report was made because time was over.
  private var isLate = false
  /// Whether a second request asked to end at once.
  var isHurried = false
  let acknowledgedBefore: UInt64
  private(set) var report: ShutdownReport?
  /// How long the journal may take to write and close.
  static let storingLimit = Duration.seconds(2)
  /// How long publishing the rest may take without progress: a tenth of the timeout, a second at
  /// least.
  private let patience: Duration

  /// `timeout` is `shutdown.timeout`, and `now` the time of the request.
  init(timeout: Duration, at now: Moment, acknowledgedBefore: UInt64) {
    limit = now.advanced(by: timeout)
    deadline = limit
    patience = max(.seconds(1), timeout / 10)
    self.acknowledgedBefore = acknowledgedBefore
  }

  /// Decides whether the phase ends now.
  mutating func advance(_ situation: Situation, at now: Moment) -> Decision {
    let isOver = deadline.map { $0 <= now } ?? false
    switch phase {
    case .draining:
      let isDone = (situation.isConnected && situation.hasDrained) || !situation.hasUnsent
      guard isOver || isHurried || isDone else { return .wait }
      guard situation.hasStore, !isHurried else {
        isLate = isOver
        return .report
      }
      phase = .storing
      deadline = now.advanced(by: Self.storingLimit)
      return .store
    case .storing:
      guard isOver || isHurried || situation.isStoreClosed else { return .wait }
      isLate = limit <= now
      return .report
    case .reporting:
      // A broker that is away for a moment may come back.
      if isHurried || situation.isIdle { return .end }
      guard isOver else { return .wait }
      guard situation.unpublished < unpublished, now < limit else { return .end }
      allowReporting(situation.unpublished, at: now)
      return .wait
    case .ended: return .end
    }
  }

  /// The outcomes of commands, the last targets and the status are published next, unless there is
  /// no time or no broker for that.
  mutating func beginReporting(_ report: ShutdownReport, isConnected: Bool, at now: Moment) {
    self.report = report
    phase = isLate || isHurried || !isConnected ? .ended : .reporting
    if isConnected { allowReporting(.max, at: now) }
  }

  /// Gives the rest another moment, within the timeout.
  private mutating func allowReporting(_ left: Int, at now: Moment) {
    unpublished = left
    deadline = min(now.advanced(by: patience), limit)
  }

  mutating func end() {
    phase = .ended
    deadline = nil
  }
}

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
