// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Journal
import LastOut
import Synchronization
import Testing

/// A journal is opened after a reboot, with a wall clock that may be wrong.
@Suite(.serialized)
struct JournalRebootTests {
  /// This machine's clocks, moved; its boots are counted.
  private final class MachineClock: Sendable {
    private struct State {
      var boot: UInt64 = 1
      var shift = Duration.zero
      var bootedAt: Int64 = 0
      /// How far the wall clock is off.
      var wallError = Duration.zero
      var isSynchronised = true
    }

    private let state = Mutex(State())

    func read() -> JournalClock {
      let real = SystemClock.read()
      return state.withLock { state in
        let shift = state.shift.wholeMilliseconds
        return JournalClock(
          moment: real.moment.advanced(by: state.shift),
          stamps: JournalStamps(
            boot: BootIdentifier(high: 0, low: state.boot),
            bootMilliseconds: real.stamps.bootMilliseconds + shift - state.bootedAt,
            wallMilliseconds: real.stamps.wallMilliseconds + shift
              + state.wallError.wholeMilliseconds
          ),
          isSynchronised: state.isSynchronised
        )
      }
    }

    func pass(_ duration: Duration) { state.withLock { $0.shift += duration } }

    /// The machine is off for `duration`; then its clock goes on after 5 s, as one that reads the
    /// time of the last shutdown from a file does.
    func reboot(offFor duration: Duration) {
      pass(duration)
      let now = SystemClock.read().stamps.bootMilliseconds
      state.withLock { state in
        state.boot += 1
        state.bootedAt = now + state.shift.wholeMilliseconds
        state.wallError = .seconds(5) - duration
        state.isSynchronised = false
      }
    }

    func synchronise() {
      state.withLock { state in
        state.wallError = .zero
        state.isSynchronised = true
      }
    }
  }

  private let folder: Folder
  private let clock = MachineClock()

  init() throws {
    folder = try Folder()
  }

  private func open() throws -> Session {
    let clock = clock
    return try Session(folder.journal, clock: { clock.read() })
  }

  /// Accepts a value with a time to live, reboots, and opens the journal again.
  private func reboot(ttl: Duration, offFor duration: Duration) throws -> Session {
    let before = try open()
    before.accept("1", for: "a", ttl: ttl)
    try before.close()
    clock.reboot(offFor: duration)
    let session = try open()
    try session.run { _ in true }
    return session
  }

  @Test func `a value of hours ago is not sent after a wrong clock at boot`() throws {
    let session = try reboot(ttl: .seconds(60), offFor: .seconds(8 * 3600))
    #expect(session.events.isEmpty)
    clock.synchronise()
    clock.pass(.seconds(2))
    try session.decideReplay()
    guard case .expired(let entry, .timeToLive)? = session.events.first else {
      Issue.record("the events were \(session.events)")
      return
    }
    #expect(entry.key == "a")
    try session.close()
  }

  @Test func `a value is sent once the clock is synchronised and shows that it is fresh`() throws {
    let session = try reboot(ttl: .seconds(600), offFor: .seconds(20))
    #expect(session.events.isEmpty)
    clock.pass(.seconds(2))
    clock.synchronise()
    try session.decideReplay()
    guard case .replay(_, let remaining)? = session.events.first else {
      Issue.record("the events were \(session.events)")
      return
    }
    #expect(remaining > .seconds(500) && remaining <= .seconds(578))
    try session.close()
  }

  @Test(arguments: [(600, 60), (10, 10)])
  func `a value expires when the clock is not synchronised in time`(ttl: Int, wait: Int) throws {
    let session = try reboot(ttl: .seconds(ttl), offFor: .seconds(3600))
    clock.pass(.seconds(wait - 3))
    try session.run { _ in true }
    #expect(session.events.isEmpty)
    clock.pass(.seconds(3))
    try session.decideReplay()
    guard case .expired(_, let reason)? = session.events.first else {
      Issue.record("the events were \(session.events)")
      return
    }
    #expect("\(reason)" == "clock not synchronised")
    try session.close()
    let next = try open()
    try next.decideReplay()
    #expect(next.events.isEmpty)
    try next.close()
  }

  @Test func `within a boot nothing waits for the clock`() throws {
    let first = try reboot(ttl: .seconds(600), offFor: .seconds(20))
    first.accept("2", for: "a", ttl: .seconds(600))
    try first.close()
    let session = try open()
    try session.decideReplay()
    #expect(session.replayed == ["a=2"])
    try session.close()
  }

  @Test func `this machine's clocks can be read`() {
    let reading = SystemClock.read()
    #expect(reading.stamps.bootMilliseconds > 0)
    #expect(reading.stamps.wallMilliseconds > 0)
  }
}
