// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import MQTT

@Suite struct BackoffTests {
  @Test func `delays double up to the limit`() {
    var backoff = Backoff(range: .seconds(1)...(.seconds(10)))
    let delays = (0..<6).map { _ in backoff.delay(jitter: 0.5, isSlow: false) }
    #expect(delays == [1, 2, 4, 8, 10, 10].map { Duration.seconds($0) })
  }

  @Test(arguments: [(0.0, 0.5), (0.5, 1.0), (0.999, 1.499)])
  func `jitter spreads a delay between half and one and a half`(jitter: Double, factor: Double) {
    var backoff = Backoff(range: .seconds(1)...(.seconds(10)))
    let delay = backoff.delay(jitter: jitter, isSlow: false)
    #expect(delay == .seconds(1) * factor)
  }

  @Test func `a stable connection starts the delays over, a short one does not`() {
    var backoff = Backoff(range: .seconds(1)...(.seconds(10)))
    _ = backoff.delay(jitter: 0.5, isSlow: false)
    backoff.lost(after: .seconds(9))
    expectDelay(&backoff, isSlow: false, .seconds(2))
    backoff.lost(after: .seconds(10))
    expectDelay(&backoff, isSlow: false, .seconds(1))
  }

  private func expectDelay(_ backoff: inout Backoff, isSlow: Bool, _ expected: Duration) {
    let delay = backoff.delay(jitter: 0.5, isSlow: isSlow)
    #expect(delay == expected)
  }

  @Test func `a refusal waits about a minute and does not change the other delays`() {
    var backoff = Backoff(range: .seconds(1)...(.seconds(10)))
    expectDelay(&backoff, isSlow: true, .seconds(60))
    expectDelay(&backoff, isSlow: false, .seconds(1))
  }
}

@Suite struct PublishWindowTests {
  private func entry(_ identifier: Int32, _ topic: String, at: UInt64 = 0) -> PublishWindow.Entry {
    PublishWindow.Entry(
      identifier: identifier,
      token: .init(number: UInt64(identifier) + 100),
      topic: topic,
      sentAt: Moment(nanoseconds: at)
    )
  }

  @Test func `the window is full at its limit and opens with an answer, in any order`() {
    var window = PublishWindow(limit: 2)
    window.sent(entry(1, "a", at: 5))
    window.sent(entry(2, "b", at: 6))
    #expect(!window.hasRoom)
    #expect(window.oldest == Moment(nanoseconds: 5))
    let first = window.answered(identifier: 1)
    #expect(first?.token.number == 101)
    #expect(window.hasRoom)
    #expect(window.oldest == Moment(nanoseconds: 6))
    let again = window.answered(identifier: 1)
    #expect(again == nil)
  }

  @Test func `an answer is waited for while the broker sends other packets, ten times as long`() {
    let second: UInt64 = 1_000_000_000
    var window = PublishWindow(limit: 20)
    window.heard(at: Moment(nanoseconds: 4 * second))
    #expect(window.due(after: .seconds(3)) == nil)
    window.sent(entry(1, "a", at: 5 * second))
    #expect(window.due(after: .seconds(3)) == Moment(nanoseconds: 8 * second))
    for number in 6..<32 {
      window.heard(at: Moment(nanoseconds: UInt64(number) * second))
      #expect(window.due(after: .seconds(3)) == Moment(nanoseconds: UInt64(number + 3) * second))
    }
    window.heard(at: Moment(nanoseconds: 34 * second))
    #expect(window.due(after: .seconds(3)) == Moment(nanoseconds: 35 * second))
    // Whoever has not read everything cannot know that there is no answer.
    window.fellBehind(at: Moment(nanoseconds: 35 * second))
    #expect(window.due(after: .seconds(3)) == Moment(nanoseconds: 38 * second))
  }

  @Test func `a publish is not waited for longer once a later one was answered`() {
    let second: UInt64 = 1_000_000_000
    var window = PublishWindow(limit: 20)
    window.sent(entry(1, "a", at: 5 * second))
    window.sent(entry(2, "b", at: 6 * second))
    window.sent(entry(3, "c", at: 7 * second))
    window.heard(at: Moment(nanoseconds: 8 * second))
    _ = window.answered(identifier: 1)
    #expect(window.due(after: .seconds(3)) == Moment(nanoseconds: 11 * second))
    _ = window.answered(identifier: 3)
    #expect(window.due(after: .seconds(3)) == Moment(nanoseconds: 9 * second))
  }

  @Test func `after a loss publishes go one at a time until the topics are answered`() {
    var window = PublishWindow(limit: 20)
    window.sent(entry(1, "a"))
    window.sent(entry(2, "b"))
    let ended = window.connectionEnded(droppedSince: .zero, at: Moment(nanoseconds: 9))
    #expect(ended.entries.map(\.identifier) == [1, 2])
    #expect(window.hasRoom)
    window.sent(entry(3, "a"))
    #expect(!window.hasRoom)
    _ = window.answered(identifier: 3)
    window.sent(entry(4, "b"))
    #expect(!window.hasRoom)
    _ = window.answered(identifier: 4)
    window.sent(entry(5, "c"))
    #expect(window.hasRoom)
  }

  @Test func `a loss by the client's deadline probes no topic`() {
    var window = PublishWindow(limit: 20)
    for _ in 0..<5 {
      window.sent(entry(1, "a"))
      let ended = window.connectionEnded(droppedSince: nil, at: .zero)
      #expect(ended.quarantined == nil)
    }
    window.sent(entry(1, "a"))
    #expect(window.hasRoom)
  }

  private static let second: UInt64 = 1_000_000_000

  /// Loses a connection with one publish in flight; returns the topic that is quarantined for it.
  ///
  /// It was accepted at `since` and the publish sent at `sent`, both in seconds.
  private func lose(
    _ window: inout PublishWindow,
    _ topic: String,
    since: UInt64,
    sent: UInt64,
    afterAnswer: Bool = false
  ) -> String? {
    window.connected()
    if window.isHeld, sent > since { window.connectionProvedGood() }
    if afterAnswer {
      window.sent(entry(1, "other", at: sent * Self.second))
      _ = window.answered(identifier: 1)
    }
    window.sent(entry(2, topic, at: sent * Self.second))
    let loss = window.connectionEnded(
      droppedSince: Moment(nanoseconds: since * Self.second),
      at: Moment(nanoseconds: (sent + 1) * Self.second)
    )
    #expect(loss.entries.count == 1)
    return loss.quarantined?.topic
  }

  @Test func `after two losses alone nothing is sent before the connection has proved good`() {
    var window = PublishWindow(limit: 20)
    for time in [10, 20] as [UInt64] {
      window.connected()
      #expect(window.hasRoom)
      let quarantined = lose(&window, "a", since: time, sent: time)
      #expect(quarantined == nil)
    }
    window.connected()
    #expect(!window.hasRoom)
    window.connectionProvedGood()
    #expect(window.hasRoom)
  }

  @Test(
    arguments: [
      (30, 30, false, nil), (30, 31, false, "a"), (30, 30, true, "a"),
    ] as [(UInt64, UInt64, Bool, String?)]
  )
  func `the third loss counts where the connection was good before`(
    since: UInt64,
    sent: UInt64,
    afterAnswer: Bool,
    quarantined: String?
  ) {
    var window = PublishWindow(limit: 20)
    for time in [10, 20] as [UInt64] { _ = lose(&window, "a", since: time, sent: time) }
    let found = lose(&window, "a", since: since, sent: sent, afterAnswer: afterAnswer)
    #expect(found == quarantined)
  }

  @Test func `a stable connection ends the probing for topics that are never sent again`() {
    var window = PublishWindow(limit: 20)
    window.sent(entry(1, "gone"))
    _ = window.connectionEnded(droppedSince: .zero, at: .zero)
    window.sent(entry(2, "a"))
    #expect(!window.hasRoom)
    window.connectionProvedStable()
    #expect(window.hasRoom)
  }
}

@Suite struct ClientIDConflictTests {
  private func at(_ seconds: UInt64) -> Moment { Moment(nanoseconds: seconds * 1_000_000_000) }

  @Test func `three short idle lives in a minute suggest a conflict`() {
    var conflict = ClientIDConflict()
    expectLikely(false, conflict.isLikely(afterLife: .seconds(1), wasIdle: true, at: at(100)))
    expectLikely(false, conflict.isLikely(afterLife: .seconds(1), wasIdle: true, at: at(102)))
    expectLikely(true, conflict.isLikely(afterLife: .seconds(1), wasIdle: true, at: at(104)))
  }

  @Test func `long lives, losses under load and old losses do not count`() {
    var conflict = ClientIDConflict()
    expectLikely(false, conflict.isLikely(afterLife: .seconds(1), wasIdle: true, at: at(100)))
    expectLikely(false, conflict.isLikely(afterLife: .seconds(60), wasIdle: true, at: at(110)))
    expectLikely(false, conflict.isLikely(afterLife: .seconds(1), wasIdle: false, at: at(120)))
    expectLikely(false, conflict.isLikely(afterLife: .seconds(1), wasIdle: true, at: at(130)))
    expectLikely(false, conflict.isLikely(afterLife: .seconds(1), wasIdle: true, at: at(165)))
  }
}

@Suite struct ConnectionProblemTests {
  @Test(
    arguments: [
      (
        4,
        "the broker refused the connection: bad user name or password (0x04);"
          + " see `username` and `password_file`", true
      ),
      (
        5,
        "the broker refused the connection: not authorized (0x05);"
          + " see `username` and `password_file`", true
      ),
      (2, "the broker refused the connection: client id rejected (0x02); see `client_id`", true),
      (3, "the broker refused the connection: server unavailable (0x03)", false),
      (
        0x87,
        "the broker refused the connection: not authorized (0x87);"
          + " see `username` and `password_file`", true
      ),
      (0x88, "the broker refused the connection: server unavailable (0x88)", false),
      (0xEE, "the broker refused the connection: reason 0xee", false),
    ] as [(Int32, String, Bool)]
  )
  func `a refusal is put in words and tried again as it deserves`(
    code: Int32,
    words: String,
    isSlow: Bool
  ) {
    let problem = ConnectionProblem(connackCode: code, sendsUsername: true)
    #expect(problem.reason == words)
    #expect(problem.callsForSlowRetry == isSlow)
  }

  @Test(
    arguments: [
      (0x8B, ConnectionProblem.Kind.ended), (0x8E, .takenOver), (0x82, .dropped), (0x81, .dropped),
      (0x95, .dropped), (0x8D, .silent),
    ] as [(Int32, ConnectionProblem.Kind)]
  )
  func `only a disconnect because of a message probes its topic`(
    code: Int32,
    kind: ConnectionProblem.Kind
  ) {
    #expect(ConnectionProblem(disconnectCode: code).kind == kind)
  }
}

private func expectLikely(_ expected: Bool, _ isRaised: Bool) {
  #expect(isRaised == expected)
}
