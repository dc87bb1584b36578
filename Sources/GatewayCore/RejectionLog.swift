// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// Counts rejections of one kind and limits their log lines: the first at once, then at most one in
/// ten seconds, with the count.
package struct RejectionTally: Sendable {
  package private(set) var total: UInt64 = 0
  private var unlogged: UInt64 = 0
  private var loggedAt: Moment?
  private static let interval = Duration.seconds(10)

  package init() {}

  /// Counts a rejection that is not logged.
  mutating func count() { total += 1 }

  /// Counts a rejection; returns the number since the last line if a line is due.
  package mutating func record(at now: Moment) -> UInt64? {
    total += 1
    unlogged += 1
    guard loggedAt.map({ $0.duration(to: now) >= Self.interval }) ?? true else { return nil }
    defer { unlogged = 0 }
    loggedAt = now
    return unlogged
  }
}

/// Counts rejected messages by kind and logs them without flooding.
package struct RejectionLog {
  package enum Kind: String, CaseIterable, Sendable {
    case unknownKey = "unknown key"
    case badValue = "bad value"
    case retained = "retained command"
    case tooLarge = "payload too large"
    case loop = "message of our own"
    case echo = "echo loop"
    case overflow = "too many keys"
    case closing = "shutting down"
  }

  private var tallies: [Kind: RejectionTally] = [:]
  private var retainedTopics: Set<String> = []
  /// How many topics of retained commands are named in the log.
  private static let retainedLimit = 1000

  package init() {}

  package func total(_ kind: Kind) -> UInt64 { tallies[kind]?.total ?? 0 }

  /// Counts a rejected message; the result is the line to log, if one is due.
  mutating func record(
    _ kind: Kind,
    topic: @autoclosure () -> String,
    reason: @autoclosure () -> String,
    at now: Moment
  ) -> LogEntry? {
    guard let unlogged = tallies[kind, default: RejectionTally()].record(at: now) else {
      return nil
    }
    return LogEntry(
      .warning,
      "Message rejected",
      [
        "kind": kind.rawValue, "topic": Excerpt.of(topic()), "reason": reason(),
        "count": "\(unlogged)", "total": "\(total(kind))",
      ]
    )
  }

  /// Counts a retained message on a command or route topic; each topic is logged once.
  ///
  /// Such a message is ignored: a stale command must not replay.
  mutating func recordRetained(topic: String) -> LogEntry? {
    tallies[.retained, default: RejectionTally()].count()
    guard retainedTopics.count < Self.retainedLimit, retainedTopics.insert(topic).inserted else {
      return nil
    }
    return LogEntry(
      .warning,
      "Retained command ignored",
      ["topic": Excerpt.of(topic)]
    )
  }
}

extension RejectionLog.Kind {
  /// The kind of rejection that an error stands for.
  package init(_ error: ValidationError) {
    switch error {
    case .feedbackLoop: self = .echo
    case .tooManyPending, .noRoomForAll: self = .overflow
    case .shuttingDown: self = .closing
    case .unknownDevice, .unknownProperty, .invalidKey, .wrongType, .outOfRange, .notAChoice,
      .unsupported, .notDurable, .noBase:
      self = .badValue
    }
  }
}
