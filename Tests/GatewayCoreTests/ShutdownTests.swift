// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import GatewayCore

@Suite struct ShutdownTests {
  private static let start = Moment(nanoseconds: 1_000_000_000)

  private static func shutdown(timeout: Duration = .seconds(10)) -> Shutdown {
    Shutdown(timeout: timeout, at: start, acknowledgedBefore: 0)
  }

  /// Connected, with something unsent and no journal.
  private static var busy: Shutdown.Situation {
    Shutdown.Situation(
      isConnected: true,
      hasUnsent: true,
      hasDrained: false,
      hasStore: false,
      isStoreClosed: true,
      unpublished: 0,
      isIdle: false
    )
  }

  private static let report = ShutdownReport(sent: 0, unsent: [])

  @Test func `it waits for what can be sent, at most until its limit`() {
    var shutdown = Self.shutdown()
    let before = Self.start.advanced(by: .milliseconds(9999))
    #expect(shutdown.advance(Self.busy, at: before) == .wait)
    #expect(shutdown.advance(Self.busy, at: Self.start.advanced(by: .seconds(10))) == .report)
    shutdown.beginReporting(Self.report, isConnected: true, at: before)
    #expect(shutdown.phase == .ended)
  }

  @Test func `the journal has two seconds to write what is left`() {
    var shutdown = Self.shutdown()
    var situation = Self.busy
    (situation.hasDrained, situation.hasStore, situation.isStoreClosed) = (true, true, false)
    #expect(shutdown.advance(situation, at: Self.start) == .store)
    #expect(shutdown.advance(situation, at: Self.start) == .wait)
    #expect(shutdown.deadline == Self.start.advanced(by: Shutdown.storingLimit))
    situation.isStoreClosed = true
    #expect(shutdown.advance(situation, at: Self.start) == .report)
  }

  @Test func `a second request ends it at once`() {
    var shutdown = Self.shutdown()
    shutdown.isHurried = true
    #expect(shutdown.advance(Self.busy, at: Self.start) == .report)
    shutdown.beginReporting(Self.report, isConnected: true, at: Self.start)
    #expect(shutdown.advance(Self.busy, at: Self.start) == .end)
  }

  /// A tenth of the timeout, and a second at least.
  @Test(arguments: [(1, 2), (1, 10), (6, 60)])
  func `publishing the rest goes on while it makes progress`(patience: Int, timeout: Int) {
    let patience = Duration.seconds(patience)
    var shutdown = Self.shutdown(timeout: .seconds(timeout))
    var situation = Self.busy
    situation.hasDrained = true
    #expect(shutdown.advance(situation, at: Self.start) == .report)
    shutdown.beginReporting(Self.report, isConnected: true, at: Self.start)
    situation.unpublished = 5
    var now = Self.start.advanced(by: patience)
    #expect(shutdown.advance(situation, at: now) == .wait)
    now = now.advanced(by: patience - .milliseconds(1))
    #expect(shutdown.advance(situation, at: now) == .wait)
    #expect(shutdown.advance(situation, at: now.advanced(by: .milliseconds(1))) == .end)
  }

  @Test func `without a broker nothing is published after the report`() {
    var shutdown = Self.shutdown()
    shutdown.beginReporting(Self.report, isConnected: false, at: Self.start)
    #expect(shutdown.advance(Self.busy, at: Self.start) == .end)
  }
}
