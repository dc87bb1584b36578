// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// Decides how long to wait before the next attempt, and logs why there is no connection.
struct Reconnection: Sendable {
  private let broker: String
  private let clientID: String
  private let log: Logger
  private var backoff: Backoff
  private var clientIDConflict = ClientIDConflict()
  /// The last cause in the log; a new cause is logged at once.
  private var loggedCause: String?
  /// How often attempts that fail for the same cause are logged.
  var pace = LogPace()

  init(configuration: MQTTConfiguration, log: Logger) {
    broker = configuration.brokers
    clientID = configuration.clientID
    self.log = log
    backoff = Backoff(range: configuration.backoff)
  }

  /// Records a connection: the next cause of a failure is logged at once.
  mutating func connected() {
    loggedCause = nil
    pace.end()
  }

  /// Records the loss of an established connection that had lasted for `life`.
  ///
  /// - Parameters:
  ///   - problem: The reason of the loss.
  ///   - life: How long the connection had lasted.
  ///   - wasIdle: Whether nothing was in flight.
  ///   - now: The time of the loss.
  /// - Returns: The problem, or the conflict of client ids that is the likely cause of it.
  mutating func lost(
    _ problem: ConnectionProblem,
    after life: Duration,
    wasIdle: Bool,
    at now: Moment
  ) -> ConnectionProblem {
    backoff.lost(after: life)
    let isIdleDrop = wasIdle && problem.kind == .dropped
    guard clientIDConflict.isLikely(afterLife: life, wasIdle: isIdleDrop, at: now) else {
      return problem
    }
    return ConnectionProblem(
      .takenOver,
      "\(problem.reason), repeatedly after connecting:"
        + " another client seems to use the client id \(clientID)"
    )
  }

  /// Decides and logs how long to wait after `problem`.
  ///
  /// - Parameters:
  ///   - problem: Why there is no connection.
  ///   - jitter: A random number in 0 ..< 1.
  ///   - now: The start of the wait.
  /// - Returns: How long to wait.
  mutating func delay(
    after problem: ConnectionProblem,
    jitter: Double = .random(in: 0..<1),
    at now: Moment
  ) -> Duration {
    let delay = backoff.delay(jitter: jitter, isSlow: problem.callsForSlowRetry)
    logWait(problem.reason, delay, at: now)
    return delay
  }

  /// Logs why there is no connection and when the next attempt follows: a new cause at once, a
  /// repeated one less and less often.
  mutating func logWait(_ reason: String, _ delay: Duration, at now: Moment) {
    let wait = "\(Self.tenths(delay)) s"
    if loggedCause != reason {
      loggedCause = reason
      pace.end()
      _ = pace.record(at: now)
      log.warning(
        "No connection to the broker",
        ["broker": broker, "reason": reason, "trying_again_in": wait]
      )
    } else if let attempts = pace.record(at: now) {
      log.info(
        "Still no connection to the broker",
        [
          "broker": broker, "reason": reason, "attempts": String(attempts),
          "trying_again_in": wait,
        ]
      )
    }
  }

  /// Seconds with one decimal.
  static func tenths(_ duration: Duration) -> String {
    let tenths = Int(((duration / .milliseconds(100)) as Double).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }
}
