// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// Random timelines through the article's queue and this one: equal, tasks that call the queue
/// included.
@Suite struct ArticleQueueTests {
  /// The operations of a task on the queue while it runs.
  private enum Reaction: Sendable {
    case enqueue(key: String, value: Int)
    case executePendingTasks
  }

  private struct Event: Sendable {
    let at: Int
    let reaction: Reaction
  }

  /// One timeline and the operations of its values.
  private struct Script: Sendable {
    var events: [Event] = []
    var reactions: [Int: [Reaction]] = [:]

    init(seed: UInt64) {
      var generator = SeededGenerator(seed: seed)
      var values = 0
      func reaction(depth: Int, _ reactions: inout [Int: [Reaction]]) -> Reaction {
        if Int.random(in: 0..<10, using: &generator) == 0 { return .executePendingTasks }
        values += 1
        let value = values
        if depth < 3, Int.random(in: 0..<3, using: &generator) == 0 {
          let inner = (0..<Int.random(in: 1...2, using: &generator)).map { _ in
            reaction(depth: depth + 1, &reactions)
          }
          reactions[value] = inner
        }
        return .enqueue(key: "k\(Int.random(in: 0..<4, using: &generator))", value: value)
      }
      var time = 0
      for _ in 0..<Int.random(in: 1...25, using: &generator) {
        time += [0, 1, 300, 1000, 2000, 2500].randomElement(using: &generator) ?? 0
        events.append(Event(at: time, reaction: reaction(depth: 0, &reactions)))
      }
    }

    /// The lines, and whether a task ran inside another one of its key.
    func playArticle() -> (lines: [String], hasOverlapped: Bool) {
      let queue = ArticleQueue()
      var lines: [String] = []
      func apply(_ reaction: Reaction) {
        switch reaction {
        case .executePendingTasks: queue.executePendingTasks()
        case .enqueue(let key, let value):
          queue.enqueueTask(
            {
              lines.append("\(queue.now) \(key)=\(value)")
              for reaction in reactions[value] ?? [] { apply(reaction) }
            },
            onStart: { lines.append("\(queue.now) \(key) starts") },
            forKey: key
          )
        }
      }
      for event in events {
        queue.run(until: event.at)
        apply(event.reaction)
      }
      queue.runToTheEnd()
      return (lines.sorted(), queue.hasOverlapped)
    }

    func playQueue() -> [String] {
      let clock = LastOutTestClock()
      let queue = LastOutQueue(clock: clock)
      let log = Log()
      @Sendable func apply(_ reaction: Reaction) {
        let now = { @Sendable in clock.elapsed.wholeNanoseconds / 1_000_000 }
        switch reaction {
        case .executePendingTasks: queue.executePendingTasks()
        case .enqueue(let key, let value):
          queue.enqueue(forKey: key, onStart: { log("\(now()) \(key) starts") }) {
            log("\(now()) \(key)=\(value)")
            for reaction in reactions[value] ?? [] { apply(reaction) }
          }
        }
      }
      for event in events {
        clock.advance(to: .milliseconds(event.at))
        apply(event.reaction)
      }
      while let next = clock.nextDeadline { clock.advance(to: next) }
      return log.lines.sorted()
    }
  }

  @Test(arguments: 0..<20)
  func `ten thousand random timelines run the same tasks at the same times`(batch: UInt64) {
    var compared = 0
    for seed in batch * 560..<(batch + 1) * 560 {
      let script = Script(seed: seed)
      let article = script.playArticle()
      // The one difference: here a value waits for older runs of its key, there it may run inside
      // or before them.
      guard !article.hasOverlapped else { continue }
      compared += 1
      #expect(script.playQueue() == article.lines, "seed \(seed)")
    }
    #expect(compared >= 500)
  }
}
