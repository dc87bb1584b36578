// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import LastOutTesting
import Testing

/// A seeded walk of a plan, driven as the gateway drives it, against a disk that fails, is slow,
/// and may have written what it reports as failed.
private struct Walk {
  /// The values of one key that have not ended, as the gateway knows them.
  private struct Row: Equatable {
    var newest: UInt64?
    var earlier: UInt64?
    var inFlight: UInt64?

    var wanted: UInt64? { newest ?? earlier ?? inFlight }

    mutating func accept(_ sequence: UInt64, isReplacing: Bool) {
      if !isReplacing, earlier == nil { earlier = newest }
      newest = sequence
    }

    /// Sends one of the values that wait; `nil` when none does.
    mutating func send(earlierFirst: Bool) -> UInt64? {
      if earlierFirst, let sent = earlier {
        inFlight = sent
        earlier = nil
      } else if let sent = newest {
        self = Row(inFlight: sent)
      } else {
        return nil
      }
      return inFlight
    }

    mutating func remove(_ sequence: UInt64) {
      if newest == sequence { newest = nil }
      if earlier == sequence { earlier = nil }
      if inFlight == sequence { inFlight = nil }
    }
  }

  private var random: SeededGenerator
  private var plan = PlanUnderTest()
  private var now = ms(0)
  /// The content of the disk after a crash, by key.
  private var disk: [String: UInt64] = [:]
  private var work: JournalWork?
  /// The writer has changed the disk already and not reported it.
  private var hasWritten = false
  private var rows: [String: Row] = [:]
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
    // The disk works again: everything is written.
    for _ in 0..<200 {
      now = max(now, plan.nextDeadline ?? now)
      serve(mayFail: false)
      check()
    }
    #expect(plan.isIdle)
    #expect(plan.fault == nil)
    #expect(plan.durableThrough == plan.sequence)
    #expect(disk == rows.compactMapValues(\.wanted))
  }

  private mutating func step(mayFail: Bool) {
    now = now.advanced(by: .milliseconds(Int.random(in: 0..<60, using: &random)))
    let key = "key\(Int.random(in: 0..<5, using: &random))"
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<4: accept(key)
    case 4:
      let earlierFirst = Bool.random(using: &random)
      guard let sent = rows[key]?.send(earlierFirst: earlierFirst) else { break }
      plan.sending(key, sent)
    case 5, 6: end(key)
    default: serve(mayFail: mayFail)
    }
  }

  private mutating func accept(_ key: String) {
    if plan.refusal(of: key, at: now) != nil { return }
    let isUrgent = Int.random(in: 0..<20, using: &random) == 0
    if isUrgent { lastCommit = nil }
    let isReplacing = Int.random(in: 0..<3, using: &random) > 0
    let newest = rows[key]?.newest
    let sequence = plan.accept(
      "",
      for: key,
      replacing: isReplacing ? newest : nil,
      at: now,
      isUrgent: isUrgent
    )
    rows[key, default: Row()].accept(sequence, isReplacing: isReplacing)
    last[key] = sequence
    if plan.fault != nil { #expect(disk[key] == nil, "a value was accepted over a row") }
  }

  /// One of the values of a key ends, whichever.
  private mutating func end(_ key: String) {
    guard let row = rows[key],
      let sequence = [row.inFlight, row.newest, row.earlier].compactMap({ $0 })
        .randomElement(using: &random)
    else { return }
    rows[key]?.remove(sequence)
    if plan.ended(key, sequence, at: now, promptly: Bool.random(using: &random)) {
      #expect(disk[key] == nil, "a reply was due while the disk had a row")
    }
  }

  /// The writer does one step.
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
    // The owner rejects values that a crash would follow with an older one, unless they were sent.
    for case .memoryOnly(_, _, let overtaken) in plan.plan.events {
      for key in overtaken {
        for sequence in [rows[key]?.newest, rows[key]?.earlier].compactMap({ $0 }) {
          rows[key]?.remove(sequence)
          plan.ended(key, sequence, at: now, promptly: true)
        }
      }
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
    case .reopen: Issue.record("a loaded journal was opened again")
    }
  }

  private mutating func check() {
    for case .durable(let through) in plan.dequeueEvents() {
      #expect(through > reported)
      reported = through
    }
    for (key, row) in rows {
      guard let sequence = row.wanted, sequence <= reported else { continue }
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
