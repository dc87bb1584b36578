// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// Random timelines through the queues themselves, against the slow model.
@Suite struct QueueModelTests {
  /// One random timeline and the policies of its keys.
  private struct Script {
    var rules: [String: SlowModel.Rule] = [:]
    var policies: [String: Policy] = [:]
    var events: [TimelinePlayer<String>.Event] = []
    var runDuration: UInt64 = 0

    init(seed: UInt64) {
      var generator = SeededGenerator(seed: seed)
      let delays: [UInt64] = [0, 1, 5, 10, 20, 50]
      for number in 0..<Int.random(in: 1...4, using: &generator) {
        let rule = RandomWalk.rule(delays, &generator)
        rules["k\(number)"] = rule
        policies["k\(number)"] = RandomWalk.policy(rule)
      }
      if seed % 3 == 0 { runDuration = UInt64.random(in: 1...40, using: &generator) }
      var time: Int64 = 0
      for number in 0..<Int.random(in: 1...60, using: &generator) {
        time +=
          Int64.random(in: 0..<4, using: &generator) == 0
          ? 0 : Int64.random(in: 0...30, using: &generator)
        let key = "k\(Int.random(in: 0..<rules.count, using: &generator))"
        events.append(Self.event(at: time, key, "\(number)", &generator))
      }
    }

    private static func event(
      at time: Int64,
      _ key: String,
      _ value: String,
      _ generator: inout SeededGenerator
    ) -> TimelinePlayer<String>.Event {
      let at = Duration.nanoseconds(time)
      switch Int.random(in: 0..<24, using: &generator) {
      case 0: return .cancel(key, at: at)
      case 1: return .init(at: at, .cancelAll)
      case 2...3: return .flush(key, at: at)
      case 4: return .init(at: at, .flushAll)
      case 5...6:
        let delay = Duration.nanoseconds(Int64.random(in: 0...60, using: &generator))
        return .set(key, value, at: at, delay: delay)
      default: return .set(key, value, at: at)
      }
    }
  }

  @Test(arguments: 0..<20)
  func `the queues equal the slow model`(batch: UInt64) {
    for seed in batch * 250..<(batch + 1) * 250 {
      let script = Script(seed: seed)
      var model = ModelPlayback(rules: script.rules, runDuration: script.runDuration)
      let expected = model.play(script.events)
      let player = TimelinePlayer<String>(
        policies: script.policies,
        runDuration: .nanoseconds(Int64(script.runDuration))
      )
      let runs = player.play(script.events).map {
        "\($0.at.wholeNanoseconds) \($0.key)=\($0.value) \($0.collapsed)"
      }
      #expect(runs.sorted() == expected, "seed \(seed)")
      guard script.runDuration == 0 else { continue }
      let closures = ClosurePlayback(policy: .standard, policies: script.policies)
      let lines = closures.play(script.events).map {
        "\($0.at.wholeNanoseconds) \($0.key)=\($0.value)"
      }
      let shorter = expected.map { $0[..<($0.lastIndex(of: " ") ?? $0.endIndex)] }.map(String.init)
      #expect(lines.sorted() == shorter.sorted(), "seed \(seed), closures")
    }
  }
}

/// Random timelines through the core, against the slow model.
@Suite struct ModelTests {
  @Test(arguments: 0..<40)
  func `the core equals the slow model`(batch: Int) {
    for seed in UInt64(batch * 200)..<UInt64(batch * 200 + 200) {
      var walk = RandomWalk(seed: seed)
      walk.play(steps: 120)
      #expect(walk.difference == nil, "seed \(seed)")
    }
  }
}
