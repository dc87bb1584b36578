// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// Known defects of other libraries, each as a timeline in milliseconds.
@Suite struct PitfallTimelineTests {
  private typealias Player = TimelinePlayer<Int>

  /// Plays changes whose values are their times and returns `time:value`.
  private func play(
    _ times: [Int],
    delay: Int,
    maxWait: Int? = nil,
    leading: Bool = false,
    taking: Int = 0
  ) -> String {
    let player = Player(
      policy: Policy(
        delay: .milliseconds(delay),
        maxWait: maxWait.map { .milliseconds($0) },
        leading: leading
      ),
      runDuration: .milliseconds(taking)
    )
    return describe(player.play(times.map { .set("k", $0, at: .milliseconds($0)) }))
  }

  private func describe(_ runs: [Player.Run]) -> String {
    runs.map { "\($0.at.wholeNanoseconds / 1_000_000):\($0.value)" }.joined(separator: " ")
  }

  @Test func `lodash maxWait: the next value is bounded from the last run, without overshoot`() {
    #expect(play([0, 90, 110], delay: 100, maxWait: 100, leading: true) == "0:0 100:90 200:110")
  }

  @Test func `lodash maxWait: a late value does not run inside its caller`() {
    #expect(play([0, 90, 110, 205], delay: 100, maxWait: 100) == "100:90 200:110 300:205")
  }

  @Test func `lodash 5780: a value after a flush in the same burst does not lead`() {
    let player = Player(policy: Policy(delay: .milliseconds(100), leading: true))
    let runs = player.play([
      .set("k", 0, at: .zero), .set("k", 1, at: .milliseconds(10)),
      .flush("k", at: .milliseconds(20)), .set("k", 2, at: .milliseconds(50)),
    ])
    #expect(describe(runs) == "0:0 20:1 150:2")
  }

  @Test func `lodash 1964: a value after a cancel leads again`() {
    let player = Player(policy: Policy(delay: .milliseconds(100), leading: true))
    let runs = player.play([
      .set("k", 0, at: .zero), .set("k", 1, at: .milliseconds(10)),
      .cancel("k", at: .milliseconds(20)), .set("k", 2, at: .milliseconds(50)),
    ])
    #expect(describe(runs) == "0:0 50:2")
  }

  @Test func `lodash 2089: a leading value alone does not run twice`() {
    #expect(play([0, 500], delay: 100, leading: true) == "0:0 500:500")
  }

  @Test func `lodash 6003: values wider apart than the delay each lead`() {
    #expect(play([0, 101, 202, 303], delay: 100, leading: true) == "0:0 101:101 202:202 303:303")
  }

  @Test func `lodash maxWait below the delay counts as the delay`() {
    #expect(play([0, 60], delay: 100, maxWait: 30) == "100:60")
  }

  @Test func `sentry-javascript 7207: maxWait equal to the delay holds under a stream`() {
    #expect(
      play(Array(stride(from: 0, through: 300, by: 30)), delay: 100, maxWait: 100)
        == "100:90 200:180 300:270 400:300"
    )
  }

  @Test func `es-toolkit 1678: leading and maxWait together run first, regularly and last`() {
    #expect(
      play([0, 50, 100, 150, 210, 260], delay: 100, maxWait: 150, leading: true)
        == "0:0 150:100 300:260"
    )
  }

  @Test func `swift-async-algorithms 299: a value at the deadline does not harm later bursts`() {
    #expect(play([0, 1, 4, 5, 7, 9, 13, 14], delay: 3) == "4:1 12:9 17:14")
  }

  @Test func `Rx.NET 1493: of two values around a deadline neither is lost`() {
    #expect(play([0, 100], delay: 100) == "100:0 200:100")
  }

  @Test func `Home Assistant: a value during a run is not dropped`() {
    #expect(play([0, 150], delay: 100, taking: 200) == "100:0 300:150")
  }

  @Test func `TanStack pacer 257: of the values during a run the newest follows it`() {
    #expect(play([0, 110, 130, 150], delay: 20, taking: 200) == "20:0 220:150")
  }

  @Test func `BullMQ 3151: a value whose quiet period outlives the run waits for its own end`() {
    #expect(play([0, 150], delay: 100, taking: 60) == "100:0 250:150")
  }

  @Test func `zigbee2mqtt 24700: maxWait keeps a chatty device from starving`() {
    #expect(
      play(Array(stride(from: 0, through: 1000, by: 50)), delay: 100, maxWait: 400)
        == "400:350 800:750 1100:1000"
    )
  }

  @Test func `Kafka suppress: maxWait counts from the first value of the burst`() {
    #expect(play([0, 80, 160], delay: 100, maxWait: 200) == "200:160")
  }

  @Test func `kotlinx 2148: a delay of zero runs now, a negative one counts as zero`() {
    let player = Player(policy: Policy(delay: .milliseconds(100)))
    let runs = player.play([
      .set("k", 0, at: .milliseconds(5), delay: .zero),
      .set("k", 1, at: .milliseconds(9), delay: .milliseconds(-3)),
    ])
    #expect(describe(runs) == "5:0 9:1")
  }

  @Test func `tokio 5536: delays beyond 2^31 and 2^36 milliseconds are kept`() {
    let delays: [Int] = [1 << 31, 1 << 36, 1 << 40]
    for delay in delays { #expect(play([0], delay: delay) == "\(delay):0") }
  }

  @Test func `JS setTimeout: a delay that no clock can reach neither overflows nor runs`() {
    var core = LastOutCore<Int>(policy: Policy(delay: .seconds(Int64.max)))
    let late = Moment(nanoseconds: .max - 5)
    core.enqueue(1, for: KeyIndex(0), at: late)
    #expect(core.nextRun(at: late)?.value == nil)
    #expect(core.nextDeadline == Moment(nanoseconds: .max))
  }

  @Test func `xstream 257: a flush at the end runs pending tasks once and never again`() {
    let player = Player(policy: Policy(delay: .milliseconds(100)))
    let runs = player.play([
      .set("k", 0, at: .zero), Player.Event(at: .milliseconds(10), .flushAll),
      Player.Event(at: .milliseconds(10), .flushAll),
    ])
    #expect(describe(runs) == "10:0")
  }
}
