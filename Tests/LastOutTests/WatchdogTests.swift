// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@Suite struct WatchdogTests {
  private let clock = LastOutTestClock()
  private let log = Log()

  @Test func `a section that ends in time is never reported`() {
    let watchdog = clock.watchdog("commit", timeout: .seconds(1)) { [log] name, _ in log(name) }
    clock.advance(by: .milliseconds(999))
    #expect(watchdog.invalidate())
    clock.advance(by: .seconds(9))
    #expect(log.lines.isEmpty)
    #expect(clock.nextDeadline == nil)
  }

  @Test func `a section that is late is reported once, with its name and the time`() {
    let watchdog = clock.watchdog("commit", timeout: .seconds(1)) { [log] name, elapsed in
      log("\(name) \(elapsed)")
    }
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["commit 1.0 seconds"])
    #expect(!watchdog.invalidate())
  }

  @Test func `a repeating watchdog speaks until it is invalidated`() {
    let watchdog = clock.watchdog("commit", timeout: .seconds(1), repeats: true) {
      [log] name, elapsed in log("\(name) \(elapsed)")
    }
    clock.advance(by: .milliseconds(2500))
    watchdog.invalidate()
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["commit 1.0 seconds", "commit 2.0 seconds"])
    #expect(clock.nextDeadline == nil)
  }

  @Test func `a handler may invalidate its own watchdog`() {
    let holder = Holder()
    holder.watchdog = clock.watchdog("commit", timeout: .seconds(1), repeats: true) {
      [log] name, _ in
      log(name)
      holder.watchdog?.invalidate()
    }
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["commit"])
    holder.watchdog = nil
  }

  @Test func `invalidate frees the handler's captures at once`() {
    weak var captured: Captured?
    let watchdog: Watchdog
    do {
      let object = Captured()
      captured = object
      watchdog = clock.watchdog("commit", timeout: .seconds(1)) { _, _ in object.use() }
    }
    #expect(captured != nil)
    watchdog.invalidate()
    #expect(captured == nil)
  }

  @Test func `a released watchdog counts as invalidated`() {
    do { _ = clock.watchdog("commit", timeout: .seconds(1)) { [log] name, _ in log(name) } }
    clock.advance(by: .seconds(9))
    #expect(log.lines.isEmpty)
  }
}

/// Where a handler finds the watchdog that calls it.
private final class Holder: Sendable {
  private let stored = Locked<Watchdog?>(nil)

  var watchdog: Watchdog? {
    get { stored.withLock { $0 } }
    set { stored.withLock { $0 = newValue } }
  }
}
