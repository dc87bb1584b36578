// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import LastOut
import LastOutTesting

/// The cluster's engine with its network: records and logs with compare-and-set, elections during
/// which nothing is answered and after which the newest messages may be numbered lower, answers
/// that are lost, writes that arrive late, reads that are stale.
final class SimulatedEngine {
  private let time: VirtualTime
  private var records: [RecordKey: [(record: ClusterRecord, revision: UInt64)]] = [:]
  private(set) var logs: [Partition: [StoredFrame]] = [:]
  /// The epochs of owners whose frames an older version cannot read.
  private var laterEpochs: [Partition: Set<UInt64>] = [:]
  /// The numbers of the newest record and the newest frame.
  private var (newestRecord, newestFrame): (UInt64, UInt64) = (0, 0)
  /// Until when there is no leader.
  private(set) var awayUntil = Moment.zero
  /// When the last write that waits for the followers is stored.
  private var orderedUntil = Moment.zero
  /// For each leader that has ended, from when on its writes were lost.
  private var lost: [Moment] = []
  /// What a message follows.
  private enum Follower: Hashable {
    case record(RecordKey, after: UInt64)
    case frame(Partition, after: UInt64)
  }
  /// What messages have followed, and since when.
  private var followers: [Follower: Moment] = [:]
  private static let memory = Duration.seconds(30)
  /// Members that the engine cannot be reached from, until when.
  private var cuts: [String: Moment] = [:]
  /// Whether anything may go wrong.
  var isFaulty = true
  /// Receives each change of a record.
  var onChange: ((RecordKey, ClusterRecord, UInt64) -> Void)?
  /// Receives each entry of a log, once it is stored.
  var onStored: ((LogFrame, Partition) -> Void)?
  /// Called when something is stored that should not be.
  var onBreach: ((String) -> Void)?
  private(set) var lateWrites = 0
  /// How many elections have changed numbers.
  private(set) var renumberings = 0
  /// How many snapshots of more than one frame were stored.
  private(set) var longSnapshots = 0
  /// The keys whose newest record has another number than it was written with.
  private var renumberedKeys: Set<RecordKey> = []
  /// How many of the newest messages may get another number.
  static let renumbered: UInt64 = 16

  /// How long a member waits for an answer.
  static let patience = Duration.seconds(2)

  init(_ time: VirtualTime) { self.time = time }

  func loseLeader(for duration: Duration) {
    awayUntil = max(awayUntil, time.now.advanced(by: duration))
    // The next leader has the first of what waits, not all of it.
    let wait = Int(time.now.duration(to: max(time.now, orderedUntil)) / .milliseconds(1))
    lost.append(time.now.advanced(by: .milliseconds(time.random.within(0...wait))))
    orderedUntil = time.now
    if time.random.chance(50) { renumber() }
  }

  /// The new leader has not counted some messages that the one before had counted and not kept.
  ///
  /// Seen with nats-server 2.9.10: what the watch had shown as 322 was 320 for the new leader, and
  /// it accepted no write that expected 322.
  private func renumber() {
    let changes = [
      Self.renumbering(records.values.joined().map(\.revision), newest: newestRecord),
      Self.renumbering(logs.values.joined().map(\.sequence), newest: newestFrame),
    ]
    if changes.contains(where: { $0.by > 0 }) { renumberings += 1 }
    for key in records.keys {
      for place in records[key]?.indices ?? 0..<0
      where records[key]?[place].revision ?? 0 >= changes[0].from {
        records[key]?[place].revision -= changes[0].by
        renumberedKeys.insert(key)
      }
    }
    for partition in logs.keys {
      for place in logs[partition]?.indices ?? 0..<0
      where logs[partition]?[place].sequence ?? 0 >= changes[1].from {
        logs[partition]?[place].sequence -= changes[1].by
      }
    }
    newestRecord -= changes[0].by
    newestFrame -= changes[1].by
  }

  /// The newest entries of the logs are lost, which were acknowledged and not written to a disk.
  ///
  /// - Returns: The partitions that have lost some.
  func forget(_ count: Int) -> Set<Partition> {
    let numbers = logs.values.joined().map(\.sequence).sorted()
    guard let first = numbers.suffix(count).first else { return [] }
    let partitions = logs.filter { $0.value.contains { $0.sequence >= first } }.map(\.key)
    for partition in partitions { logs[partition]?.removeAll { $0.sequence >= first } }
    newestFrame = first - 1
    lost.append(time.now)
    orderedUntil = time.now
    return Set(partitions)
  }

  /// The number from which on numbers become lower, and by how much: the newest gap is closed.
  private static func renumbering(
    _ numbers: [UInt64],
    newest: UInt64
  ) -> (from: UInt64, by: UInt64) {
    let last = numbers.filter { $0 + renumbered > newest }.sorted()
    for place in last.indices.dropFirst().reversed() where last[place] - last[place - 1] == 3 {
      return (last[place], 2)
    }
    return (newest + 1, 0)
  }

  /// The number of the next message; now and then, some are counted that are not kept.
  private func next(after newest: inout UInt64) -> UInt64 {
    newest += isFaulty && time.random.chance(8) ? 3 : 1
    return newest
  }

  func cut(_ member: String, for duration: Duration) {
    cuts[member] = max(cuts[member] ?? .zero, time.now.advanced(by: duration))
  }

  func heal() {
    isFaulty = false
    awayUntil = .zero
    cuts = [:]
  }

  func reaches(_ member: String) -> Bool { isConnected(member) && awayUntil <= time.now }

  /// Whether messages between a member and others pass; the engine needs no leader for that.
  func isConnected(_ member: String) -> Bool { (cuts[member] ?? .zero) <= time.now }

  // MARK: - Operations

  func write(
    _ key: RecordKey,
    _ record: ClusterRecord,
    after predecessor: Predecessor,
    by member: String,
    _ answer: @escaping (WriteOutcome) -> Void
  ) {
    call(by: member, answer, .unknown) { answer in
      let current = self.records[key]?.last?.revision ?? 0
      guard current == predecessor.revision else { return answer(.conflict) }
      self.propose {
        guard self.isNews(.record(key, after: predecessor.count)) else { return answer(.conflict) }
        if self.isTheft(key, record) { self.onBreach?("\(key) is taken from a living owner") }
        self.renumberedKeys.remove(key)
        let revision = self.next(after: &self.newestRecord)
        self.records[key, default: []].append((record, revision))
        self.onChange?(key, record, revision)
        answer(.stored(revision: revision))
      }
    }
  }

  private func isTheft(_ key: RecordKey, _ record: ClusterRecord) -> Bool {
    // A writer may have read an older record with the number that this one has now.
    guard !renumberedKeys.contains(key), let taker = record.owner?.member,
      let before = records[key]?.last?.record.owner,
      let owner = before.member, owner != taker,
      let presence = records[.member(owner)]?.last?.record.member
    else { return false }
    return presence.incarnation == before.incarnation && presence.state.isPresent
  }

  /// Reads a record; a follower may answer with an older one.
  func read(
    _ key: RecordKey,
    by member: String,
    _ answer: @escaping ((record: ClusterRecord, revision: UInt64)??) -> Void
  ) {
    call(by: member, answer, .none) { answer in
      let known = self.records[key] ?? []
      let isStale = self.isFaulty && known.count > 1 && self.time.random.chance(10)
      answer(.some(isStale ? known[known.count - 2] : known.last))
    }
  }

  func append(
    _ frame: LogFrame,
    to partition: Partition,
    after predecessor: Predecessor,
    by member: String,
    isLater: Bool,
    _ answer: @escaping (WriteOutcome) -> Void
  ) {
    call(by: member, answer, .unknown) { answer in
      let last = self.logs[partition]?.last?.sequence ?? 0
      guard last == predecessor.revision else { return answer(.conflict) }
      self.propose {
        guard self.isNews(.frame(partition, after: predecessor.count)) else {
          return answer(.conflict)
        }
        if let claimed = self.logs[partition]?.last?.frame.epoch, frame.epoch < claimed {
          self.onBreach?("\(partition) gets an entry of epoch \(frame.epoch) after \(claimed)")
        }
        if isLater { self.laterEpochs[partition, default: []].insert(frame.epoch) }
        let sequence = self.next(after: &self.newestFrame)
        if case .snapshot(let part, 2...) = frame.kind, part > 0 { self.longSnapshots += 1 }
        self.logs[partition, default: []].append(
          StoredFrame(
            sequence: sequence,
            storedAt: Int64(self.time.now.nanoseconds),
            frame: frame
          )
        )
        self.onStored?(frame, partition)
        answer(.stored(revision: sequence))
      }
    }
  }

  func readLast(
    of partition: Partition,
    by member: String,
    isLater: Bool,
    _ answer: @escaping (LogEnd) -> Void
  ) {
    call(by: member, answer, .unknown) { answer in
      let log = self.logs[partition] ?? []
      let isStale = self.isFaulty && log.count > 1 && self.time.random.chance(10)
      guard let end = isStale ? log[log.count - 2] : log.last else { return answer(.empty) }
      answer(self.canRead(end, of: partition, isLater) ? .frame(end) : .unreadable)
    }
  }

  private func canRead(_ frame: StoredFrame, of partition: Partition, _ isLater: Bool) -> Bool {
    isLater || !(laterEpochs[partition]?.contains(frame.frame.epoch) ?? false)
  }

  func readLog(
    of partition: Partition,
    from first: UInt64,
    through last: UInt64,
    by member: String,
    isLater: Bool,
    _ answer: @escaping (LogPart) -> Void
  ) {
    call(by: member, answer, .unknown) { answer in
      let log = (self.logs[partition] ?? []).filter {
        (first...max(first, last)).contains($0.sequence)
      }
      guard log.allSatisfy({ self.canRead($0, of: partition, isLater) }) else {
        return answer(.unreadable)
      }
      answer(.frames(self.isFaulty && self.time.random.chance(5) ? Array(log.dropLast()) : log))
    }
  }

  func purge(_ partition: Partition, before first: UInt64, by member: String) {
    call(by: member, { _ in }, ()) { _ in
      self.logs[partition]?.removeAll { $0.sequence < first }
    }
  }

  /// Stores something once the followers have it, in order, unless the leader ends before.
  ///
  /// What a write expects was compared when it arrived: several that arrive at once may have
  /// passed. Seen with nats-server 2.9.10, as upstream's issue 4320 describes it.
  private func propose(_ store: @escaping () -> Void) {
    let delay = Duration.milliseconds(time.random.within(0...8))
    let moment = max(orderedUntil, time.now.advanced(by: delay))
    orderedUntil = moment
    let leaders = lost.count
    time.plan(at: moment) {
      if self.lost.count > leaders, self.lost[leaders] < moment { return }
      store()
    }
  }

  /// Remembers what a message follows; `false` if another does.
  private func isNews(_ follower: Follower) -> Bool {
    if let since = followers[follower], since.duration(to: time.now) < Self.memory { return false }
    followers[follower] = time.now
    return true
  }

  /// Carries out an operation after a while and answers, or does not.
  private func call<Answer>(
    by member: String,
    _ answer: @escaping (Answer) -> Void,
    _ unknown: Answer,
    _ operation: @escaping (@escaping (Answer) -> Void) -> Void
  ) {
    let isLate = isFaulty && time.random.chance(2)
    let isAnswerLost = isFaulty && time.random.chance(2)
    let isAnswerSlow = isFaulty && time.random.chance(2)
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
      operation { result in
        if isAnswerLost { return }
        self.time.plan(within: isAnswerSlow ? 100...1900 : 1...15) {
          // An answer may be lost, but nothing arrives from behind a cut.
          if self.reaches(member) || !self.isFaulty { reply(result) }
        }
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

  /// The newest records: what a member finds that reads the last numbers again.
  var newest: some Sequence<(RecordKey, ClusterRecord, UInt64)> {
    snapshot.lazy.filter { $0.2 + Self.renumbered > self.newestRecord }
  }
}
