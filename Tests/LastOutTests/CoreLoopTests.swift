// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

/// How an event loop of a program drives the core.
@Suite struct CoreLoopTests {
  @Test func `a loop of one's own drives the core`() {
    var names = KeyTable()
    var core = LastOutCore<Int>(policy: Policy(delay: .milliseconds(300)))
    let lamp = names.intern("desk-lamp/brightness")
    core.setPolicy(.live, for: names.intern("shelf/brightness"))

    var started: [Int] = []
    var deadline: Moment?
    func start(_ run: LastOutCore<Int>.Run) { started.append(run.value) }
    func wait(until next: Moment?) { deadline = next }

    func wake(at now: Moment, changes: [(key: KeyIndex, value: Int)]) {
      while let run = core.nextRun(at: now) { start(run) }
      for change in changes {
        core.enqueue(change.value, for: change.key, at: now)
        while let run = core.nextReady(at: now) { start(run) }
      }
      wait(until: core.nextDeadline)
    }

    func ended(_ key: KeyIndex, at now: Moment) {
      core.finish(key, at: now)
      while let run = core.nextReady(at: now) { start(run) }
      wait(until: core.nextDeadline)
    }

    let shelf = names.intern("shelf/brightness")
    wake(at: .zero, changes: [(lamp, 1), (lamp, 2), (shelf, 10), (shelf, 20)])
    #expect(started == [10])
    ended(shelf, at: .zero)
    #expect(deadline == Moment(nanoseconds: 200_000_000))
    wake(at: Moment(nanoseconds: 300_000_000), changes: [])
    #expect(started.sorted() == [2, 10, 20])
    #expect(deadline == nil)
  }
}
