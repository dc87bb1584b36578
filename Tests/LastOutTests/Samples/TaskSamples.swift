// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import Testing

/// The samples of the article about single tasks, each followed by its expected result.
@Suite struct TaskSamples {
  private let log = Log()

  @Test func `a reminder is cancelled in time`() {
    let reminder = DelayedTask(after: .seconds(30)) { log("still open") }
    if reminder.cancel() == .alreadyStarted { log("too late, it was said") }
    #expect(log.lines.isEmpty)
  }

  @Test func `saving does not wait`() {
    let save = DelayedTask(after: .seconds(60)) { log("saved") }
    save.runNow()
    #expect(log.lines == ["saved"])
  }

  @Test func `a quick section is not reported`() {
    let watchdog = Watchdog("commit", timeout: .seconds(5)) { name, elapsed in
      log("\(name) has taken \(elapsed) so far")
    }
    commit()
    watchdog.invalidate()
    #expect(log.lines == ["committed"])
  }

  @Test func `only the last text is searched for`() {
    let searched = DispatchSemaphore(value: 0)
    let log = Searches(searched)
    let search = debounce(delay: .milliseconds(300))
    for text in ["d", "de", "desk"] {
      search { log("search for \(text)") }
    }
    if search.isPending { search.flush() }
    #expect(searched.wait(timeout: .now() + .seconds(60)) == .success)
    #expect(log.first == "search for desk")
  }

  private func commit() { log("committed") }
}

/// Signals the first search.
private final class Searches: Sendable {
  private let semaphore: DispatchSemaphore
  private let text = Locked<String?>(nil)

  init(_ semaphore: DispatchSemaphore) { self.semaphore = semaphore }

  var first: String? { text.withLock { $0 } }

  func callAsFunction(_ line: String) {
    text.withLock { $0 = $0 ?? line }
    semaphore.signal()
  }
}
