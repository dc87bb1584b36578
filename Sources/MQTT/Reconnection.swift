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

/// Detects another client with the same client id: the two keep disconnecting each other.
///
/// MQTT 3.1.1 has no reason code for this. Several short connections in a row, lost with nothing in
/// flight, therefore count as such a conflict.
struct ClientIDConflict: Hashable, Sendable {
  /// The maximum duration of a short connection.
  static let shortLife: Duration = .seconds(5)
  static let period: Duration = .seconds(60)
  static let losses = 3

  /// When the last short-lived connections were lost, oldest first.
  private var moments: [Moment] = []

  /// Records a lost connection that had lived for `life`; returns whether a conflict is likely.
  mutating func isLikely(
    afterLife life: Duration,
    wasIdle: Bool,
    at now: Moment
  ) -> Bool {
    guard wasIdle, life < Self.shortLife else { return false }
    moments.append(now)
    moments.removeAll { $0.duration(to: now) > Self.period }
    return moments.count >= Self.losses
  }
}

/// How long to wait before the next attempt: doubling, jittered, reset by a stable connection.
struct Backoff: Hashable, Sendable {
  /// How long a connection must last for the next delay to start over.
  static let stability: Duration = .seconds(10)
  /// The delay after a refusal that needs a fix by the operator.
  static let slow: Duration = .seconds(60)

  private let range: ClosedRange<Duration>
  /// The next delay, before jitter.
  private var next: Duration

  init(range: ClosedRange<Duration>) {
    self.range = range
    next = range.lowerBound
  }

  /// The next delay: between half and one and a half of the doubled value, so that many clients do
  /// not reconnect at the same time.
  ///
  /// - Parameters:
  ///   - jitter: A random number in 0 ..< 1.
  ///   - isSlow: Whether the operator must fix the cause; the delay is then around a minute.
  /// - Returns: How long to wait.
  mutating func delay(jitter: Double, isSlow: Bool) -> Duration {
    let factor = 0.5 + jitter
    if isSlow { return max(Self.slow, range.upperBound) * factor }
    let delay = next
    next = min(next * 2, range.upperBound)
    return delay * factor
  }

  /// Records how long the lost connection lasted.
  mutating func lost(after life: Duration) {
    if life >= Self.stability { next = range.lowerBound }
  }
}
