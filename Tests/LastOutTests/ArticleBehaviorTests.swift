// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LastOut
import LastOutTesting
import Testing

/// The features in the articles beside the queue itself.
@Suite struct ArticleBehaviorTests {
  @Test func `the default queue is one for the whole program`() {
    #expect(LastOutQueue.default === LastOutQueue.default)
    let log = Log()
    LastOutQueue.default.enqueue(forKey: "ArticleBehaviorTests") { log("ran") }
    #expect(LastOutQueue.default.flush(forKey: "ArticleBehaviorTests") == .ran)
    #expect(log.lines == ["ran"])
  }

  @Test func `a watchdog without a handler writes its name and the time`() async throws {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      let clock = LastOutTestClock()
      let watchdog = Watchdog("commit", timeout: .seconds(5), clock: clock)
      clock.advance(by: .seconds(9))
      watchdog.invalidate()
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("commit has taken 5.0 seconds so far"))
  }

  @Test func `a task that throws is written to standard error unless somebody listens`() async {
    struct Broken: Error {}
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      let queue = LastOutQueue()
      queue.enqueue(forKey: "lamp") { throw Broken() }
      queue.flushAll()
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("the task of key \"lamp\" threw: Broken()"))
  }

  @Test func `every test that the documentation names exists`() throws {
    let root = (0..<3).reduce(URL(filePath: #filePath)) { url, _ in
      url.deletingLastPathComponent()
    }
    let text = try String(contentsOf: root.appending(path: "docs/library.md"), encoding: .utf8)
    var count = 0
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "*")
      guard line.hasPrefix("|"), parts.count == 3,
        let name = parts[2].split(separator: "`").dropFirst().first
      else { continue }
      let file = root.appending(path: "Tests/LastOutTests/\(parts[1]).swift")
      let source = try String(contentsOf: file, encoding: .utf8)
      #expect(source.contains("func `\(name)`"), "\(parts[1]): \(name)")
      count += 1
    }
    #expect(count >= 18)
  }
}
