// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Durability

@Suite struct CommitScheduleTests {
  private var settings: JournalPlan.Settings {
    var settings = JournalPlan.Settings()
    settings.commit = .milliseconds(100)
    settings.retry = .milliseconds(500)
    settings.longestRetry = .seconds(2)
    return settings
  }

  private func at(_ milliseconds: UInt64) -> Moment {
    Moment(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func `the first change is due at once, the next one a commit interval later`() {
    var schedule = CommitSchedule(settings)
    #expect(schedule.deadline(afterFault: false) == nil)
    schedule.want(at: at(1000))
    #expect(schedule.deadline(afterFault: false) == at(1000))
    schedule.began(at: at(1000))
    schedule.collected()
    schedule.want(at: at(1010))
    #expect(schedule.deadline(afterFault: false) == at(1100))
    schedule.hurry(at: at(1020))
    #expect(schedule.deadline(afterFault: false) == at(1020))
  }

  @Test func `the earliest wish decides`() {
    var schedule = CommitSchedule(settings)
    schedule.want(at: at(5000))
    schedule.want(at: at(4000))
    schedule.want(at: at(6000))
    #expect(schedule.deadline(afterFault: false) == at(4000))
  }

  @Test func `attempts after failures double their wait up to the limit, until one succeeds`() {
    var schedule = CommitSchedule(settings)
    var waits: [Moment?] = []
    for _ in 0..<4 {
      schedule.failed(at: at(0))
      waits.append(schedule.deadline(afterFault: true))
    }
    #expect(waits == [500, 1000, 2000, 2000].map { at($0) })
    schedule.succeeded()
    schedule.failed(at: at(0))
    #expect(schedule.deadline(afterFault: true) == at(500))
    schedule.retry(at: at(100))
    #expect(schedule.deadline(afterFault: true) == at(100))
  }
}

@Suite struct JournalKeyTableTests {
  @Test func `keys are numbered in the order of their first mention`() {
    var keys = JournalKeyTable()
    let numbers = ["a/x", "b/x", "a/x"].map { keys.number(of: $0).rawValue }
    #expect(numbers == [0, 1, 0])
    #expect(keys.names == ["a/x", "b/x"])
    #expect(keys.find("c/x") == nil)
  }

  @Test func `a key waits once for the next commit`() {
    var keys = JournalKeyTable()
    let key = keys.number(of: "a/x")
    keys.markDirty(key)
    keys.markDirty(key)
    let first = keys.dequeueDirty()
    #expect(first == [key])
    #expect(!keys.hasDirty)
    keys.markDirty(key)
    #expect(keys.hasDirty)
  }
}

@Suite struct DiskRowTests {
  @Test func `a row that may or may not be replaced counts as the older and longer-lived one`() {
    let old = DiskRow(sequence: 3, expiresAt: Moment(nanoseconds: 90))
    let new = DiskRow(sequence: 5, expiresAt: Moment(nanoseconds: 70))
    #expect(DiskRow.either(old, new) == old)
    let unknown = DiskRow(sequence: 4, expiresAt: nil)
    #expect(DiskRow.either(new, unknown) == unknown)
  }
}
