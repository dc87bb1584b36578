// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import LastOut
import LastOutTesting

/// The cluster's engine with its network: records and logs with compare-and-set, elections during
/// which nothing is answered, answers that are lost, writes that arrive late, reads that are stale.
final class SimulatedEngine {
  private let time: VirtualTime
  private var records: [RecordKey: [(record: ClusterRecord, revision: UInt64)]] = [:]
  private(set) var logs: [Partition: [StoredFrame]] = [:]
  private var revision: UInt64 = 0
  /// Until when there is no leader.
  private(set) var awayUntil = Moment.zero
  /// Members that the engine cannot be reached from, until when.
  private var cuts: [String: Moment] = [:]
  /// Whether anything may go wrong.
  var isFaulty = true
  /// Receives each change of a record.
  var onChange: ((RecordKey, ClusterRecord, UInt64) -> Void)?
  private(set) var lateWrites = 0

  /// How long a member waits for an answer.
  static let patience = Duration.seconds(2)

  init(_ time: VirtualTime) { self.time = time }

  func loseLeader(for duration: Duration) {
    awayUntil = max(awayUntil, time.now.advanced(by: duration))
  }

  func cut(_ member: String, for duration: Duration) {
    cuts[member] = max(cuts[member] ?? .zero, time.now.advanced(by: duration))
  }

  func heal() {
    isFaulty = false
    awayUntil = .zero
    cuts = [:]
  }

  func reaches(_ member: String) -> Bool {
    (cuts[member] ?? .zero) <= time.now && awayUntil <= time.now
  }

  // MARK: - Operations

  func write(
    _ key: RecordKey,
    _ record: ClusterRecord,
    expecting expected: UInt64,
    by member: String,
    _ answer: @escaping (WriteOutcome) -> Void
  ) {
    call(by: member, answer, .unknown) {
      let current = self.records[key]?.last?.revision ?? 0
      guard current == expected else { return .conflict }
      self.revision += 1
      self.records[key, default: []].append((record, self.revision))
      self.onChange?(key, record, self.revision)
      return .stored(revision: self.revision)
    }
  }

  /// Reads a record; a follower may answer with an older one.
  func read(
    _ key: RecordKey,
    by member: String,
    _ answer: @escaping ((record: ClusterRecord, revision: UInt64)??) -> Void
  ) {
    call(by: member, answer, .none) {
      let known = self.records[key] ?? []
      let isStale = self.isFaulty && known.count > 1 && self.time.random.chance(10)
      return .some(isStale ? known[known.count - 2] : known.last)
    }
  }

  func append(
    _ frame: LogFrame,
    to partition: Partition,
    expecting expected: UInt64,
    by member: String,
    _ answer: @escaping (WriteOutcome) -> Void
  ) {
    call(by: member, answer, .unknown) {
      let last = self.logs[partition]?.last?.sequence ?? 0
      guard last == expected else { return .conflict }
      self.revision += 1
      self.logs[partition, default: []].append(
        StoredFrame(
          sequence: self.revision,
          storedAt: Int64(self.time.now.nanoseconds),
          frame: frame
        )
      )
      return .stored(revision: self.revision)
    }
  }

  func readLast(
    of partition: Partition,
    by member: String,
    _ answer: @escaping (LogEnd) -> Void
  ) {
    call(by: member, answer, .unknown) {
      let log = self.logs[partition] ?? []
      let isStale = self.isFaulty && log.count > 1 && self.time.random.chance(10)
      return (isStale ? log[log.count - 2] : log.last).map { .frame($0) } ?? .empty
    }
  }

  func readLog(
    of partition: Partition,
    through last: UInt64,
    by member: String,
    _ answer: @escaping ([StoredFrame]?) -> Void
  ) {
    call(by: member, answer, nil) {
      let log = (self.logs[partition] ?? []).filter { $0.sequence <= last }
      return self.isFaulty && self.time.random.chance(5) ? Array(log.dropLast()) : log
    }
  }

  func purge(_ partition: Partition, before first: UInt64, by member: String) {
    call(by: member, { _ in }, ()) {
      self.logs[partition]?.removeAll { $0.sequence < first }
    }
  }

  /// Carries out an operation after a while and answers, or does not.
  private func call<Answer>(
    by member: String,
    _ answer: @escaping (Answer) -> Void,
    _ unknown: Answer,
    _ operation: @escaping () -> Answer
  ) {
    let isLate = isFaulty && time.random.chance(2)
    let isAnswerLost = isFaulty && time.random.chance(2)
    var isAnswered = false
    func reply(_ value: Answer) {
      guard !isAnswered else { return }
      isAnswered = true
      answer(value)
    }
    time.plan(after: Self.patience) { reply(unknown) }
    func arrive() {
      guard self.reaches(member) else {
        // A message may wait in a socket, and arrive when the engine is back.
        if isLate { self.time.plan(within: 500...8000) { arrive() } }
        return
      }
      if isAnswered { self.lateWrites += 1 }
      let result = operation()
      if isAnswerLost { return }
      self.time.plan(within: 1...15) {
        // An answer may be lost, but nothing arrives from behind a cut.
        if self.reaches(member) || !self.isFaulty { reply(result) }
      }
    }
    if isLate {
      time.plan(within: 1500...6000) { arrive() }
    } else {
      time.plan(within: 1...15) { arrive() }
    }
  }

  /// Every record, as a new reader finds it.
  var snapshot: [(RecordKey, ClusterRecord, UInt64)] {
    records.compactMap { key, known in known.last.map { (key, $0.record, $0.revision) } }
      .sorted { $0.2 < $1.2 }
  }
}
