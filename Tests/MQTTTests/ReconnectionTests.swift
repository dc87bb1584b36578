// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import Testing

@testable import MQTT

@Suite struct ReconnectionTests {
  private let lines = Locked<[String]>([])
  private let dropped = ConnectionProblem(.dropped, "reset")

  private func reconnection() -> Reconnection {
    var configuration = MQTTConfiguration(
      endpoint: .tcp(host: "broker", port: 1883),
      clientID: "settle-1"
    )
    configuration.backoff = .seconds(1)...(.seconds(10))
    let log = Logger { [lines] line in lines.withLock { $0.append(line) } }
    return Reconnection(configuration: configuration, log: log)
  }

  private func at(_ seconds: UInt64) -> Moment { Moment(nanoseconds: seconds * 1_000_000_000) }

  private func wait(_ reconnection: inout Reconnection, _ reason: String, at seconds: UInt64) {
    let problem = ConnectionProblem(.unreachable, reason)
    _ = reconnection.delay(after: problem, jitter: 0.5, at: at(seconds))
  }

  private func count(_ text: String) -> Int {
    lines.withLock { $0.count { $0.contains(text) } }
  }

  @Test func `a new cause is logged at once, a repeated one at first not`() {
    var reconnection = reconnection()
    for seconds in 0..<5 { wait(&reconnection, "refused", at: UInt64(seconds)) }
    wait(&reconnection, "no route", at: 6)
    #expect(count("warning No connection to the broker") == 2)
    #expect(count("Still no connection") == 0)
    wait(&reconnection, "no route", at: 100)
    #expect(count("Still no connection") == 1)
  }

  @Test func `the same cause is logged at once after a connection`() {
    var reconnection = reconnection()
    wait(&reconnection, "refused", at: 0)
    reconnection.connected()
    wait(&reconnection, "refused", at: 1)
    #expect(count("warning No connection to the broker") == 2)
  }

  @Test func `idle drops soon after connecting become a conflict of client ids and a slow retry`() {
    var reconnection = reconnection()
    var problem = dropped
    for seconds in 0..<3 {
      problem = reconnection.lost(
        dropped,
        after: .seconds(1),
        wasIdle: true,
        at: at(UInt64(seconds))
      )
    }
    #expect(problem.kind == .takenOver)
    #expect(problem.reason.contains("client id settle-1"))
    let delay = reconnection.delay(after: problem, jitter: 0.5, at: at(3))
    #expect(delay == Backoff.slow)
  }

  @Test(arguments: [(true, ConnectionProblem.Kind.ended), (false, .dropped)])
  func `a shutdown of the broker or a drop under load suggests no conflict`(
    wasIdle: Bool,
    kind: ConnectionProblem.Kind
  ) {
    var reconnection = reconnection()
    let problem = ConnectionProblem(kind, "gone")
    for seconds in 0..<9 {
      let judged = reconnection.lost(
        problem,
        after: .seconds(1),
        wasIdle: wasIdle,
        at: at(UInt64(seconds))
      )
      #expect(judged == problem)
    }
  }
}

@Suite struct ConnectionPhaseTests {
  private func window(sentAt: UInt64) -> PublishWindow {
    var window = PublishWindow(limit: 5)
    window.sent(.init(identifier: 1, token: .init(number: 1), topic: "a", sentAt: at(sentAt)))
    return window
  }

  private func at(_ seconds: UInt64) -> Moment { Moment(nanoseconds: seconds * 1_000_000_000) }

  private func deadline(_ phase: ConnectionPhase, _ window: PublishWindow) -> Moment? {
    phase.nextDeadline(window: window, acknowledgementDeadline: .seconds(3))
  }

  @Test func `a connection waits for the keep-alive or the oldest acknowledgement`() {
    let phase = ConnectionPhase.connected(since: at(0), keepAliveAt: at(20))
    #expect(deadline(phase, PublishWindow(limit: 5)) == at(20))
    #expect(deadline(phase, window(sentAt: 10)) == at(13))
    #expect(deadline(phase, window(sentAt: 18)) == at(20))
  }

  @Test func `a connection without anything to wait for has no deadline`() {
    let phase = ConnectionPhase.connected(since: at(0), keepAliveAt: nil)
    #expect(deadline(phase, PublishWindow(limit: 5)) == nil)
    #expect(deadline(.idle, window(sentAt: 1)) == nil)
  }

  @Test func `while topics are probed, the end of the probing is a deadline`() {
    var window = window(sentAt: 0)
    _ = window.connectionEnded(droppedSince: at(0), at: at(1))
    let phase = ConnectionPhase.connected(since: at(10), keepAliveAt: at(20))
    #expect(deadline(phase, window) == at(15))
  }

  @Test func `a connection that must prove good has a deadline after a second`() {
    var window = PublishWindow(limit: 5)
    for _ in 0..<2 {
      window.sent(.init(identifier: 1, token: .init(number: 1), topic: "a", sentAt: at(0)))
      _ = window.connectionEnded(droppedSince: at(0), at: at(1))
    }
    window.connected()
    let phase = ConnectionPhase.connected(since: at(10), keepAliveAt: at(20))
    #expect(deadline(phase, window) == at(11))
    window.connectionProvedGood()
    #expect(deadline(phase, window) == at(15))
  }

  @Test func `every other phase has its own deadline, whatever is in flight`() {
    let window = window(sentAt: 0)
    #expect(deadline(.handshaking(deadline: at(7)), window) == at(7))
    #expect(deadline(.closing(deadline: at(8)), window) == at(8))
    #expect(deadline(.waiting(until: at(9)), window) == at(9))
  }
}
