// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// The interval between runs: its start, and what ignores it.
@Suite struct IntervalTests {
  private typealias Player = TimelinePlayer<Int>

  /// Plays events in milliseconds under a policy with an interval of 200 ms; returns `time:value`.
  private func play(
    _ events: [Player.Event],
    delay: Int = 200,
    maxWait: Int? = 200,
    leading: Bool = true,
    interval: Int = 200,
    taking: Int = 0
  ) -> String {
    let player = Player(
      policy: Policy(
        delay: .milliseconds(delay),
        maxWait: maxWait.map { .milliseconds($0) },
        leading: leading,
        minInterval: .milliseconds(interval)
      ),
      runDuration: .milliseconds(taking)
    )
    return player.play(events).map { "\($0.at.wholeNanoseconds / 1_000_000):\($0.value)" }
      .joined(separator: " ")
  }

  private func changes(_ times: Int...) -> [Player.Event] {
    times.map { .set("k", $0, at: .milliseconds($0)) }
  }

  @Test func `live runs once per 200 ms, also where a new burst begins`() {
    #expect(Policy.live.minInterval == .milliseconds(200))
    #expect(play(changes(0, 10, 212)) == "0:0 200:10 400:212")
  }

  @Test func `a leading value within the interval runs when it ends, and the newest wins`() {
    #expect(play(changes(0, 10, 212, 230, 390)) == "0:0 200:10 400:390")
  }

  @Test func `the interval beats maxWait`() {
    #expect(
      play(changes(0, 40, 80, 120, 160, 200, 240), delay: 50, maxWait: 100, leading: false)
        == "100:80 300:240"
    )
  }

  @Test func `the interval holds a value of a burst of its own`() {
    #expect(play(changes(0, 60), delay: 50, maxWait: nil, leading: false) == "50:0 250:60")
  }

  @Test func `a value that settles after the interval is not moved`() {
    #expect(play(changes(0, 500), delay: 50, maxWait: nil, leading: false) == "50:0 550:500")
  }

  @Test func `the interval survives a cancel`() {
    let cancel = Player.Event.cancel("k", at: .milliseconds(20))
    #expect(play(changes(0) + [cancel] + changes(30)) == "0:0 200:30")
  }

  @Test func `a flush ignores the interval and restarts it`() {
    let flush = Player.Event.flush("k", at: .milliseconds(100))
    #expect(play(changes(0, 50) + [flush] + changes(310)) == "0:0 100:50 310:310")
    #expect(play(changes(0, 50) + [flush] + changes(290), delay: 10) == "0:0 100:50 300:290")
  }

  @Test func `the interval is measured between starts, regardless of the length of a run`() {
    #expect(play(changes(0, 10, 20), delay: 5, maxWait: nil, taking: 150) == "0:0 200:20")
    #expect(play(changes(0, 10, 20), delay: 5, maxWait: nil, taking: 350) == "0:0 350:20")
  }

  @Test func `runs under a stream of changes are an interval apart`() {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<200 {
      var time = 0
      let times = (0..<60).map { _ in
        time += Int.random(in: 1...260, using: &generator)
        return time
      }
      let runs = Player(policy: .live).play(times.map { .set("k", $0, at: .milliseconds($0)) })
      for (one, next) in zip(runs, runs.dropFirst()) {
        #expect(next.at - one.at >= .milliseconds(200))
      }
      #expect(runs.last?.value == time)
    }
  }

  @Test func `a policy without an interval keeps its spacing`() {
    #expect(play(changes(0, 10, 212), interval: 0) == "0:0 200:10 212:212")
  }

  @Test func `an idle key keeps its interval and then gives its memory back`() {
    var core = LastOutCore<Int>(policy: Policy(delay: .zero, minInterval: .nanoseconds(100)))
    for key in Int32(0)..<5000 {
      let now = Moment(nanoseconds: UInt64(key) * 10)
      core.enqueue(1, for: KeyIndex(key), at: now)
      while let run = core.nextRun(at: now) { core.finish(run.key, at: now) }
    }
    #expect(core.slotCount <= 64)
  }

  @Test func `leading only runs the first change of a burst and drops the others`() {
    let player = Player(policy: .leadingOnly(delay: .milliseconds(100)))
    let runs = player.play(changes(0, 50, 140, 239, 340, 345))
    #expect(runs.map(\.value) == [0, 340])
    #expect(runs.map(\.at) == [.zero, .milliseconds(340)])
  }

  @Test func `leading only with an interval leads when the interval ends`() {
    let policy = Policy.leadingOnly(delay: .milliseconds(50), minInterval: .milliseconds(200))
    let runs = Player(policy: policy).play(changes(0, 60, 70, 300))
    #expect(runs.map(\.value) == [0, 70, 300])
    #expect(runs.map(\.at) == [.zero, .milliseconds(200), .milliseconds(400)])
  }
}
