// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@Suite struct PreconditionTests {
  @Test func `ending a run that never began traps`() async {
    await #expect(processExitsWith: .failure) {
      var core = LastOutCore<Int>()
      core.enqueue(1, for: KeyIndex(0), at: .zero)
      core.finish(KeyIndex(0), at: .zero)
    }
  }

  @Test func `ending a run twice traps`() async {
    await #expect(processExitsWith: .failure) {
      var core = LastOutCore<Int>()
      core.enqueue(1, for: KeyIndex(0), at: .zero)
      _ = core.flush(KeyIndex(0), at: .zero)
      core.finish(KeyIndex(0), at: .zero)
      core.finish(KeyIndex(0), at: .zero)
    }
  }

  @Test func `a negative key index traps`() async {
    await #expect(processExitsWith: .failure) {
      var core = LastOutCore<Int>()
      core.enqueue(1, for: KeyIndex(-1), at: .zero)
    }
  }

  @Test func `asking for a name that was never interned traps`() async {
    await #expect(processExitsWith: .failure) {
      let table = KeyTable()
      _ = table.name(of: KeyIndex(0))
    }
  }

  @Test func `a test clock that is sent back traps`() async {
    await #expect(processExitsWith: .failure) {
      let clock = LastOutTestClock()
      clock.advance(to: .seconds(2))
      clock.advance(to: .seconds(1))
    }
  }

  @Test func `a player whose events go back in time traps`() async {
    await #expect(processExitsWith: .failure) {
      _ = TimelinePlayer<Int>().play([.set("k", 1, at: .seconds(1)), .set("k", 2, at: .zero)])
    }
  }

  @Test func `an exit test without a broken precondition succeeds`() async {
    await #expect(processExitsWith: .success) {
      var core = LastOutCore<Int>()
      core.enqueue(1, for: KeyIndex(0), at: .zero)
      _ = core.flush(KeyIndex(0), at: .zero)
      core.finish(KeyIndex(0), at: .zero)
    }
  }
}
