// Settle
// SPDX-License-Identifier: Apache-2.0

import Foundation
import LastOut
import LastOutTesting
import Testing

/// The tests of other libraries, run against the queue.
@Suite struct PrecedentTests {
  @Test(arguments: Precedent.all)
  func `the queue matches the table`(precedent: Precedent) throws {
    let playback = ClosurePlayback(policy: precedent.policy)
    let events = try precedent.changes.split(separator: " ").map { try Self.event(String($0)) }
    let runs = playback.play(events).map { "\($0.at.wholeNanoseconds / 1_000_000):\($0.value)" }
    #expect(
      runs.joined(separator: " ") == precedent.runs,
      "\(precedent.library): \(precedent.name)"
    )
  }

  @Test func `the documentation has every row`() throws {
    let root = (0..<3).reduce(URL(filePath: #filePath)) { url, _ in
      url.deletingLastPathComponent()
    }
    let text = try String(contentsOf: root.appending(path: "docs/library.md"), encoding: .utf8)
    for precedent in Precedent.all {
      let verdict =
        switch precedent.verdict {
        case .agrees: "agrees"
        case .differs(let what): "differs: \(what)"
        }
      let row = "| \(precedent.library) | \(precedent.name) | \(verdict) |"
      #expect(text.contains(row), "missing: \(row)")
    }
  }

  @Test func `underscore, debounce asap recursively: a leading task does not run itself again`() {
    let clock = LastOutTestClock()
    let log = Log()
    let queue = clock.queue(policy: .leadingOnly(delay: .milliseconds(32)))
    @Sendable func run() {
      log("ran")
      if log.lines.count < 10 { queue.enqueue(forKey: "k") { run() } }
    }
    queue.enqueue(forKey: "k") { run() }
    clock.advance(by: .milliseconds(96))
    #expect(log.lines.count == 1)
  }

  @Test func `underscore, debounce re-entrant and throttle re-entrant`() {
    let expected = [Policy(delay: .milliseconds(32)): [32, 64, 96], throttle: [0, 32, 64]]
    for (policy, times) in expected {
      let clock = LastOutTestClock()
      let log = Log()
      let queue = clock.queue(policy: policy)
      @Sendable func append(_ rest: [String]) {
        guard let first = rest.first else { return }
        log("\(clock.elapsed.wholeNanoseconds / 1_000_000)\(first)")
        if rest.count > 1 { queue.enqueue(forKey: "k") { append(Array(rest.dropFirst())) } }
      }
      queue.enqueue(forKey: "k") { append(["a", "b", "c"]) }
      clock.advance(by: .milliseconds(100))
      #expect(log.lines == zip(times, ["a", "b", "c"]).map { "\($0)\($1)" })
    }
  }

  private let throttle = Policy(
    delay: .milliseconds(32),
    maxWait: .milliseconds(32),
    leading: true,
    minInterval: .milliseconds(32)
  )

  /// Reads `time:value`, `time:value@delay`, `time:cancel` or `time:flush`.
  private static func event(_ text: String) throws -> TimelinePlayer<String>.Event {
    let parts = text.split(separator: ":").map(String.init)
    let at = Duration.milliseconds(try #require(Int(parts[0])))
    switch parts[1] {
    case "cancel": return .init(at: at, .cancelAll)
    case "flush": return .init(at: at, .flushAll)
    case let value:
      let halves = value.split(separator: "@").map(String.init)
      let delay = halves.count > 1 ? Int(halves[1]).map { Duration.milliseconds($0) } : nil
      return .set("k", halves[0], at: at, delay: delay)
    }
  }
}
