// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import LastOutTesting
import Testing

/// A seeded walk of a plan against a disk that fails, delays, and may have written what it denied.
private struct Walk {
  private var random: SeededGenerator
  private var plan = JournalPlan.fresh()
  private var now = ms(0)
  /// What a crash would find, by key.
  private var disk: [String: UInt64] = [:]
  private var work: JournalWork?
  /// The writer has changed the disk already, and not yet said so.
  private var hasWritten = false
  /// The newest value of each key that is neither finished nor withdrawn.
  private var newest: [String: UInt64] = [:]
  /// The newest value of each key ever.
  private var last: [String: UInt64] = [:]
  private var reported: UInt64 = 0
  private var lastCommit: Moment?
  private(set) var commits = 0
  private(set) var failures = 0

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
  }

  mutating func run(steps: Int) {
    for _ in 0..<steps {
      step(mayFail: true)
      check()
    }
    // The disk works again: everything comes to rest.
    for _ in 0..<200 {
      now = max(now, plan.nextDeadline ?? now)
      serve(mayFail: false)
      check()
    }
    #expect(plan.isIdle)
    #expect(plan.fault == nil)
    #expect(plan.durableThrough == plan.sequence)
    #expect(disk == newest)
  }

  private mutating func step(mayFail: Bool) {
    now = now.advanced(by: .milliseconds(Int.random(in: 0..<60, using: &random)))
    let key = "key\(Int.random(in: 0..<5, using: &random))"
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<4: accept(key)
    case 4:
      guard let sequence = newest[key] else { break }
      plan.sending(key, sequence: sequence)
    case 5, 6:
      guard let sequence = newest.removeValue(forKey: key) else { break }
      if plan.finished(key, through: sequence, at: now) {
        #expect(disk[key] == nil, "a reply was due while the disk had a row")
      }
    default: serve(mayFail: mayFail)
    }
  }

  private mutating func accept(_ key: String) {
    if plan.refusal(of: key, at: now) != nil { return }
    let isUrgent = Int.random(in: 0..<20, using: &random) == 0
    if isUrgent { lastCommit = nil }
    let receipt = plan.accept(
      [],
      for: key,
      ttl: .seconds(3600),
      at: now,
      isUrgent: isUrgent
    )
    newest[key] = receipt.sequence
    last[key] = receipt.sequence
    if receipt.fault != nil {
      #expect(disk[key] == nil, "a value was taken into memory over a row")
    }
  }

  /// The writer moves on by one step.
  private mutating func serve(mayFail: Bool) {
    guard let work else {
      self.work = plan.nextWork(at: now)
      hasWritten = false
      if case .commit? = self.work {
        if let lastCommit { #expect(lastCommit.duration(to: now) >= .milliseconds(100)) }
        lastCommit = now
        commits += 1
      }
      return
    }
    let fate = Int.random(in: 0..<10, using: &random)
    if !hasWritten, !mayFail || fate > 0 {
      write(work)
      hasWritten = true
      return
    }
    self.work = nil
    guard mayFail, !hasWritten || fate == 1 else { return plan.completed(.done, at: now) }
    failures += 1
    lastCommit = nil
    plan.completed(.failed(.diskFull), at: now)
    // Values that a crash would overtake must not be sent: the owner drops them.
    for case .memoryOnly(_, _, let overtaken) in plan.news {
      for key in overtaken { newest[key] = nil }
    }
    for case .memoryOnly(_, _, let overtaken) in plan.news {
      for key in overtaken { plan.finished(key, through: .max, at: now) }
    }
  }

  private mutating func write(_ work: JournalWork) {
    switch work {
    case .commit(let batch):
      for key in batch.removals { disk[key] = nil }
      for entry in batch.puts { disk[entry.key] = entry.sequence }
    case .rebuild(let entries):
      disk = [:]
      for entry in entries { disk[entry.key] = entry.sequence }
    case .reopen: Issue.record("a loaded journal was to be opened again")
    }
  }

  private mutating func check() {
    for case .durable(let through) in plan.takeNews() {
      #expect(through > reported)
      reported = through
    }
    for (key, sequence) in newest where sequence <= reported {
      #expect(disk[key] ?? 0 >= sequence, "\(key): a durable value is not on the disk")
    }
    for (key, sequence) in last where !plan.holdsOlder(key, than: sequence, at: now) {
      #expect(disk[key] ?? sequence >= sequence, "\(key): an older value is on the disk unnoticed")
    }
  }
}

struct JournalPlanWalkTests {
  @Test(arguments: [1, 1000, 2000, 3000] as [UInt64])
  func `whatever the disk does, durable values are on it and older ones are known`(start: UInt64) {
    var (commits, failures) = (0, 0)
    for seed in start..<(start + 100) {
      var walk = Walk(seed: seed)
      walk.run(steps: 400)
      commits += walk.commits
      failures += walk.failures
    }
    #expect(commits > 1000 && failures > 100)
  }
}
