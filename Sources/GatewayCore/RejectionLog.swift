// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
import LastOut

/// Counts rejected messages and limits their log lines: the first of each kind at once, then at most
/// one in ten seconds, with the count.
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

  private struct Tally {
    var total: UInt64 = 0
    var unlogged: UInt64 = 0
    var loggedAt: Moment?
  }

  private var tallies: [Kind: Tally] = [:]
  private var retainedTopics: Set<String> = []
  private static let interval = Duration.seconds(10)
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
    var tally = tallies[kind] ?? Tally()
    defer { tallies[kind] = tally }
    tally.total += 1
    tally.unlogged += 1
    guard tally.loggedAt.map({ $0.duration(to: now) >= Self.interval }) ?? true else { return nil }
    let unlogged = tally.unlogged
    tally.loggedAt = now
    tally.unlogged = 0
    return LogEntry(
      .warning,
      "Message rejected",
      [
        "kind": kind.rawValue, "topic": Excerpt.of(topic()), "reason": reason(),
        "count": "\(unlogged)", "total": "\(tally.total)",
      ]
    )
  }

  /// Counts a retained message on a command or route topic; each topic is logged once.
  ///
  /// Such a message is ignored: a stale command must not replay.
  mutating func recordRetained(topic: String) -> LogEntry? {
    tallies[.retained, default: Tally()].total += 1
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
