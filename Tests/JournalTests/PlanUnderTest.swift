// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

@testable import Durability

/// A moment so many milliseconds after the start.
func ms(_ milliseconds: Int) -> Moment {
  Moment.zero.advanced(by: .milliseconds(milliseconds))
}

/// A plan with keys and values as text: commits 100 ms apart, removals after 1 s, retries from 500
/// ms.
@dynamicMemberLookup
struct PlanUnderTest {
  /// A value that the owner keeps.
  private struct Text: JournalValue {
    var text: String
    var bytes: [UInt8] { Array(text.utf8) }
  }

  var plan: JournalPlan
  private var kept: [UInt64: String] = [:]

  init(_ plan: JournalPlan = JournalPlan(contents: JournalContents())) {
    self.plan = plan
  }

  subscript<Result>(dynamicMember path: KeyPath<JournalPlan, Result>) -> Result {
    plan[keyPath: path]
  }

  // MARK: - Events

  mutating func accept(
    _ value: String,
    for key: String,
    replacing replaced: UInt64? = nil,
    at now: Moment,
    isUrgent: Bool = false
  ) -> UInt64 {
    let sequence = plan.accept(
      plan.number(of: key),
      replacing: replaced,
      at: now,
      expiresAt: now.advanced(by: .seconds(60)),
      isUrgent: isUrgent
    )
    kept[sequence] = value
    return sequence
  }

  mutating func sending(_ key: String, _ sequence: UInt64) {
    plan.sending(plan.number(of: key), sequence: sequence)
  }

  @discardableResult
  mutating func ended(
    _ key: String,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool = false
  ) -> Bool {
    plan.ended(plan.number(of: key), sequence, at: now, promptly: promptly)
  }

  mutating func nextWork(at now: Moment) -> JournalWork? {
    let kept = kept
    return plan.nextWork(at: now) { _, sequence in Text(text: kept[sequence] ?? "?") }
  }

  /// The writes and removals of the next work, as `key=value` and `-key`; `nil` without work.
  mutating func batch(at now: Moment) -> [String]? {
    switch nextWork(at: now) {
    case nil: nil
    case .commit(let batch): Self.texts(batch.puts) + batch.removals.map { "-\($0)" }
    case .rebuild(let entries): ["rebuild"] + Self.texts(entries)
    case .reopen: ["reopen"]
    }
  }

  mutating func completed(_ result: JournalResult, at now: Moment) {
    plan.completed(result, at: now)
  }

  mutating func decideReplay(_ clock: JournalClock) { plan.decideReplay(clock) }

  mutating func dequeueEvents() -> [JournalEvent] { plan.dequeueEvents() }

  // MARK: - Queries

  func refusal(of key: String, at now: Moment) -> JournalFault? {
    plan.keys.find(key).flatMap { plan.refusal(of: $0, at: now) }
  }

  func holdsOlder(_ key: String, than sequence: UInt64, at now: Moment) -> Bool {
    plan.keys.find(key).map { plan.holdsOlder($0, than: sequence, at: now) } ?? false
  }

  func keeps(_ key: String) -> Bool { plan.keys.find(key).map(plan.keeps) ?? false }

  /// Whether nothing is known of any key: the disk is empty and stays so.
  var isEmpty: Bool { plan.keys.all.allSatisfy { plan[$0].isEmpty } }

  private static func texts(_ entries: [JournalEntry]) -> [String] {
    entries.map { "\($0.key)=\(String(decoding: $0.value, as: UTF8.self))" }
  }
}
