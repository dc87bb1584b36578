// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Operations

/// Counts input that was refused where no reply is possible, and logs it without flooding: the
/// first of each kind at once, then at most one line in ten seconds with the count.
struct Refusals {
  enum Kind: String, CaseIterable {
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
  private let interval = Duration.seconds(10)
  private let log: Logger

  init(log: Logger) {
    self.log = log
  }

  func total(_ kind: Kind) -> UInt64 { tallies[kind]?.total ?? 0 }

  var total: UInt64 { tallies.values.reduce(0) { $0 + $1.total } }

  mutating func note(
    _ kind: Kind,
    topic: @autoclosure () -> String,
    reason: @autoclosure () -> String,
    at now: Moment
  ) {
    var tally = tallies[kind] ?? Tally()
    tally.total += 1
    tally.unlogged += 1
    if tally.loggedAt.map({ $0.duration(to: now) >= interval }) ?? true {
      log.warning(
        "Message refused",
        [
          "kind": kind.rawValue, "topic": Excerpt.of(topic()), "reason": reason(),
          "count": String(tally.unlogged), "total": String(tally.total),
        ]
      )
      tally.loggedAt = now
      tally.unlogged = 0
    }
    tallies[kind] = tally
  }

  /// A retained message on a command or route topic: counted, logged once per topic.
  mutating func noteRetained(topic: String) {
    tallies[.retained, default: Tally()].total += 1
    guard retainedTopics.count < 1000, retainedTopics.insert(topic).inserted else { return }
    log.warning(
      "Retained command ignored: a stale command must not replay",
      ["topic": Excerpt.of(topic)]
    )
  }
}

extension Refusals.Kind {
  /// The kind of refusal that an error stands for.
  init(_ error: ValidationError) {
    switch error {
    case .echoLoop: self = .echo
    case .tooManyPending, .noRoomForAll: self = .overflow
    case .shuttingDown: self = .closing
    case .unknownDevice, .unknownProperty, .invalidKey, .wrongType, .outOfRange, .notAChoice,
      .unsupported, .notDurable, .noBase:
      self = .badValue
    }
  }
}
