// Settle
// SPDX-License-Identifier: Apache-2.0

package import Durability
package import LastOut

/// What a ``PartitionLogs`` asks of the engine and tells its owner.
package enum LogEffect: Sendable {
  /// Append a frame if the log's last one is still the one given; report it by
  /// ``PartitionLogs/appended(_:epoch:_:clock:)``.
  case append(Partition, LogFrame, after: Predecessor)
  /// Read the log's last frame; report it by ``PartitionLogs/readLast(_:epoch:_:clock:)``.
  case readLast(Partition, epoch: UInt64)
  /// Read the log between two frames; report it by ``PartitionLogs/read(_:epoch:_:clock:)``.
  case read(Partition, epoch: UInt64, from: UInt64, through: UInt64)
  /// Frames before this one are not needed any more.
  case purge(Partition, before: UInt64)
  /// The work has ended.
  case finished(JournalResult)
  /// A partition can be written, and earlier owners left these values.
  case opened(Partition, epoch: UInt64, [JournalEntry])
  /// A newer owner has claimed the partition's log.
  case lost(Partition, epoch: UInt64)
  /// The log has an entry that this version cannot read.
  case unreadable(Partition, epoch: UInt64)
  /// The engine has lost frames of the log that it had acknowledged; what its owner holds is
  /// written again.
  case shortened(Partition)
}

extension LogEffect {
  /// The partition that it is about; `nil` for the end of a piece of work.
  var partition: Partition? {
    switch self {
    case .append(let partition, _, _), .readLast(let partition, _), .read(let partition, _, _, _),
      .purge(let partition, _), .opened(let partition, _, _), .lost(let partition, _),
      .unreadable(let partition, _), .shortened(let partition):
      partition
    case .finished: nil
    }
  }
}

/// How a read of a log's end went.
package enum LogEnd: Sendable {
  case frame(StoredFrame)
  case empty
  /// It cannot be read: it may be of a later version.
  case unreadable
  /// No answer.
  case unknown
}

/// How a read of a log went.
package enum LogPart: Sendable {
  /// Its frames, in order.
  case frames([StoredFrame])
  /// One of them cannot be read: it may be of a later version.
  case unreadable
  /// No answer.
  case unknown
}

/// Decides what is written to the logs of a member's partitions: the cluster's counterpart of the
/// journal's file.
///
/// Each log takes a frame only behind the one that its writer has seen last. A new owner writes its
/// claim first: whatever an earlier owner appends after that is refused, and what it appended
/// before is read. So a value that was accepted is either seen by the new owner, or was never
/// accepted.
///
/// It has no clock and does no I/O. One piece of work at a time, as with the journal's thread.
package struct PartitionLogs: Sendable {
  package let member: String
  private let partition: @Sendable (String) -> Partition
  private let settings: LogSettings
  var logs: [Partition: PartitionLog] = [:]
  private var effects: [LogEffect] = []
  /// The partitions whose frames the work waits for; `nil` without work.
  private var working: Set<Partition>?
  private var fault: JournalFault?
  /// When the work began.
  private var startedAt = Moment.zero

  static let retry = Duration.milliseconds(250)
  /// How long work may take before it fails: longer than the engine takes to elect a leader.
  static let patience = Duration.seconds(6)

  /// - Parameters:
  ///   - member: The member's name.
  ///   - settings: How long frames and logs are.
  ///   - partition: The partition of a key.
  package init(
    member: String,
    settings: LogSettings = LogSettings(),
    partition: @escaping @Sendable (String) -> Partition
  ) {
    self.member = member
    self.settings = settings
    self.partition = partition
  }

  /// Returns what to do and to tell since the last call, in order.
  package mutating func dequeueEffects() -> [LogEffect] { exchange(&effects, with: []) }

  /// When ``advance(to:)`` has something to do.
  package var nextDeadline: Moment? { logs.values.compactMap(\.retryAt).min() }

  /// Whether the work's frames for a partition are written.
  private func isOpen(_ partition: Partition) -> Bool { logs[partition]?.isAdopted ?? false }

  // MARK: - Opening and closing

  /// Claims the log of a partition and reads it; ``LogEffect/opened(_:epoch:_:)``,
  /// ``LogEffect/lost(_:epoch:)`` or ``LogEffect/unreadable(_:epoch:)`` follows.
  package mutating func open(_ partition: Partition, epoch: UInt64) {
    close(partition)
    logs[partition] = PartitionLog(epoch: epoch, settings: settings)
    find(partition)
  }

  /// The owner of the queue has taken over what ``LogEffect/opened(_:epoch:_:)`` has brought: from
  /// the next work on, that is all of the partition's values.
  package mutating func adopted(_ partition: Partition, epoch: UInt64) {
    guard let log = logs[partition], log.epoch == epoch, log.phase == .open else { return }
    logs[partition]?.isAdopted = true
  }

  /// Forgets a partition: another member has it, or will.
  package mutating func close(_ partition: Partition) {
    remove(partition)
    ended(partition)
  }

  private mutating func remove(_ partition: Partition) {
    guard logs.removeValue(forKey: partition) != nil else { return }
    // What was decided before and not done yet is about a log that is not this member's any more.
    effects.removeAll { $0.partition == partition }
  }

  package mutating func advance(to now: Moment) {
    for (partition, log) in logs.sorted(by: { $0.key < $1.key }) {
      guard let retryAt = log.retryAt, retryAt <= now else { continue }
      logs[partition]?.retryAt = nil
      // A claim that cannot be read may have another number since an election: its end is read
      // again.
      if log.phase == .open { writeNext(in: partition) } else { find(partition) }
    }
  }

  private mutating func find(_ partition: Partition) {
    guard let epoch = logs[partition]?.epoch else { return }
    logs[partition]?.isBusy = true
    effects.append(.readLast(partition, epoch: epoch))
  }

  private mutating func load(_ partition: Partition, through last: UInt64) {
    guard let log = logs[partition] else { return }
    logs[partition]?.isBusy = true
    logs[partition]?.phase = .loading(through: last)
    // After an election, even the last entry may have a lower number than the snapshot had.
    let first = log.base > last ? 1 : max(1, log.base)
    effects.append(.read(partition, epoch: log.epoch, from: first, through: last))
  }

  private mutating func lose(_ partition: Partition) {
    guard let epoch = logs[partition]?.epoch else { return }
    giveUp(partition, .lost(partition, epoch: epoch))
  }

  private mutating func giveUp(_ partition: Partition, _ effect: LogEffect) {
    remove(partition)
    effects.append(effect)
    ended(partition)  // After that: the work has not stored what was this partition's.
  }

  // MARK: - Work

  /// Begins a piece of work, which ``LogEffect/finished(_:)`` ends.
  ///
  /// Keys of partitions that are not open are skipped: another member has them.
  package mutating func submit(_ work: JournalWork, clock: JournalClock) {
    precondition(working == nil, "One piece of work at a time.")
    working = []
    fault = nil
    startedAt = clock.moment
    switch work {
    case .commit(let batch): commit(batch, clock)
    case .rebuild(let entries): rebuild(entries, clock)
    case .reopen: break
    }
    finishIfDone()
  }

  private mutating func commit(_ batch: JournalBatch, _ clock: JournalClock) {
    var changes: [Partition: (puts: [LogFrame.Row], removals: [String])] = [:]
    // A log has its values in the order in which they were accepted.
    for entry in batch.puts.sorted(by: { $0.sequence < $1.sequence }) {
      changes[partition(entry.key), default: ([], [])].puts.append(LogFrame.Row(entry, clock))
    }
    for key in batch.removals { changes[partition(key), default: ([], [])].removals.append(key) }
    for (partition, change) in changes.sorted(by: { $0.key < $1.key }) where isOpen(partition) {
      guard let log = logs[partition] else { continue }
      let frames = log.changes(puts: change.puts, removals: change.removals)
      enqueue(frames, of: partition, isWork: true)
    }
  }

  /// Replaces what every open log holds, after a failure: it is unknown what arrived.
  private mutating func rebuild(_ entries: [JournalEntry], _ clock: JournalClock) {
    var rows: [Partition: [LogFrame.Row]] = [:]
    for entry in entries {
      rows[partition(entry.key), default: []].append(LogFrame.Row(entry, clock))
    }
    for partition in logs.keys.sorted() where isOpen(partition) {
      logs[partition]?.dropWaiting()
      logs[partition]?.replaceHeld(by: rows[partition] ?? [], clock)
      enqueue(logs[partition]?.snapshot(clock) ?? [], of: partition, isWork: true)
    }
  }

  private mutating func enqueue(_ frames: [LogFrame], of partition: Partition, isWork: Bool) {
    guard !frames.isEmpty else { return }
    if isWork { working?.insert(partition) }
    for frame in frames { logs[partition]?.waiting.append(.init(frame: frame, isWork: isWork)) }
    writeNext(in: partition)
  }

  /// Begins the next operation of an open log.
  private mutating func writeNext(in partition: Partition) {
    guard let log = logs[partition], log.phase == .open, !log.isBusy else { return }
    guard let next = log.waiting.first else { return ended(partition) }
    if !log.waiting.contains(where: \.isWork) { ended(partition) }
    if log.isUncertain { return find(partition) }
    logs[partition]?.isBusy = true
    logs[partition]?.isAppending = true
    append(next.frame, to: partition)
  }

  private mutating func append(_ frame: LogFrame, to partition: Partition) {
    guard let log = logs[partition] else { return }
    var frame = frame
    frame.number = log.last.count &+ 1
    frame.base = log.base
    effects.append(.append(partition, frame, after: log.last))
  }

  /// Nothing of the work is left to do for a partition.
  private mutating func ended(_ partition: Partition) {
    guard working?.remove(partition) != nil else { return }
    finishIfDone()
  }

  private mutating func finishIfDone() {
    guard working?.isEmpty ?? false else { return }
    working = nil
    effects.append(.finished(fault.map { .failed($0) } ?? .done))
  }

  // MARK: - Answers

  /// An append has ended.
  package mutating func appended(
    _ partition: Partition,
    epoch: UInt64,
    _ outcome: WriteOutcome,
    clock: JournalClock
  ) {
    guard let log = logs[partition], log.epoch == epoch else { return }
    logs[partition]?.isBusy = false
    switch log.phase {
    case .claiming:
      switch outcome {
      case .stored(let sequence): load(partition, through: sequence)
      case .conflict: find(partition)
      case .unknown: retryLater(partition, clock)
      }
    case .open: appended(partition, outcome, clock)
    case .finding, .loading: preconditionFailure("A log that is read is not written.")
    }
  }

  private mutating func appended(
    _ partition: Partition,
    _ outcome: WriteOutcome,
    _ clock: JournalClock
  ) {
    logs[partition]?.isAppending = false
    if logs[partition]?.isOutdated ?? false {
      logs[partition]?.isOutdated = false
      logs[partition]?.isUncertain = true
      return writeNext(in: partition)
    }
    switch outcome {
    case .stored(let sequence):
      guard let frame = logs[partition]?.waiting.removeFirst().frame else { return }
      logs[partition]?.refusals = 0
      if logs[partition]?.isShort ?? false {
        logs[partition]?.isShort = false
        effects.append(.shortened(partition))
      }
      logs[partition]?.stored(frame, at: sequence, clock)
      compacted(partition, frame, at: sequence)
      compact(partition, clock)
    case .conflict:  // Someone was faster, or an earlier try.
      logs[partition]?.isUncertain = true
      // The engine may remember a message that it has lost, for half a minute.
      logs[partition]?.refusals += 1
      if logs[partition]?.refusals ?? 0 > 2 { return retryLater(partition, clock) }
    case .unknown: return unanswered(partition, clock)
    }
    writeNext(in: partition)
  }

  /// An operation of an open log had no answer: it is repeated for a while, and then the work
  /// fails.
  private mutating func unanswered(_ partition: Partition, _ clock: JournalClock) {
    logs[partition]?.isUncertain = true
    if working?.contains(partition) ?? false,
      startedAt.duration(to: clock.moment) < Self.patience
    {
      return retryLater(partition, clock)
    }
    failed(partition)
    writeNext(in: partition)
  }

  private mutating func failed(_ partition: Partition) {
    logs[partition]?.isUncertain = true
    logs[partition]?.waiting = []
    logs[partition]?.isShort = false
    logs[partition]?.snapshotStart = 0
    // Where only a snapshot failed, what it replaces is still there.
    guard working?.contains(partition) ?? false else { return }
    fault = .failed(call: "append", reason: "the cluster's engine does not answer")
    ended(partition)
  }

  /// The end of a log was read.
  package mutating func readLast(
    _ partition: Partition,
    epoch: UInt64,
    _ end: LogEnd,
    clock: JournalClock
  ) {
    guard let log = logs[partition], log.epoch == epoch else { return }
    logs[partition]?.isBusy = false
    switch end {
    case .unknown:
      if log.phase == .open { return unanswered(partition, clock) }
      return retryLater(partition, clock)
    case .unreadable:
      // What this member has written itself is readable: a newer owner has claimed an open log.
      if log.phase == .open { return lose(partition) }
      return giveUp(partition, .unreadable(partition, epoch: epoch))
    case .empty: ends(partition, at: .none, clock)
    case .frame(let stored):
      if stored.frame.epoch > epoch { return lose(partition) }
      ends(partition, at: stored.asPredecessor, clock)
      if log.phase != .open { logs[partition]?.base = stored.frame.base }
      if stored.frame.epoch == epoch, log.phase != .open {
        // Two may have the same epoch where an election has changed the numbers of records.
        guard stored.frame.kind == .claim(member: member) else { return lose(partition) }
        return load(partition, through: stored.sequence)  // The claim is stored.
      }
    }
    logs[partition]?.isUncertain = false
    if log.phase == .open { return writeNext(in: partition) }
    logs[partition]?.phase = .claiming
    logs[partition]?.isBusy = true
    append(LogFrame(kind: .claim(member: member), epoch: epoch), to: partition)
  }

  /// The log ends before the owner's last frame: the engine has lost what it had acknowledged.
  ///
  /// What the owner holds is appended again, before anything else.
  private mutating func writeAgain(
    _ partition: Partition,
    after end: Predecessor,
    _ clock: JournalClock
  ) {
    guard let log = logs[partition] else { return }
    let isWork = log.waiting.contains { $0.isWork && $0.frame.isSnapshot }
    let rest = log.waiting.filter { !$0.frame.isSnapshot }
    let again = log.snapshot(clock).map { PartitionLog.Waiting(frame: $0, isWork: isWork) }
    logs[partition]?.waiting = again + rest
    logs[partition]?.snapshotStart = 0
    logs[partition]?.isShort = true
    // Its own count goes on: the engine may remember the messages that it has lost.
    logs[partition]?.last = Predecessor(revision: end.revision, count: log.last.count)
  }

  /// The log ends here.
  private mutating func ends(
    _ partition: Partition,
    at end: Predecessor,
    _ clock: JournalClock
  ) {
    guard let log = logs[partition] else { return }
    if log.phase == .open, end.count < log.last.count {
      return writeAgain(partition, after: end, clock)
    }
    if log.isShort {
      // The end that was read before was an older one: nothing is lost.
      logs[partition]?.isShort = false
      logs[partition]?.waiting.removeAll { !$0.isWork && $0.frame.isSnapshot }
    }
    logs[partition]?.last = end
  }

  /// A log was read up to its claim.
  package mutating func read(
    _ partition: Partition,
    epoch: UInt64,
    _ part: LogPart,
    clock: JournalClock
  ) {
    guard let log = logs[partition], log.epoch == epoch, case .loading(let through) = log.phase
    else { return }
    logs[partition]?.isBusy = false
    if case .unreadable = part { return giveUp(partition, .unreadable(partition, epoch: epoch)) }
    guard case .frames(let frames) = part, let claim = frames.last, claim.sequence == through else {
      return retryLater(partition, clock)
    }
    var contents = LogContents()
    for frame in frames { contents.append(frame) }
    if log.base > 0, !contents.hasSnapshot {
      // It has another number since an election.
      logs[partition]?.base = 0
      return load(partition, through: through)
    }
    var entries: [JournalEntry] = []
    for held in contents.ordered {
      // Both times are the engine's.
      var row = held.row
      row.age += .nanoseconds(max(0, claim.storedAt - held.storedAt))
      logs[partition]?.hold(row, clock)
      let age = row.age.wholeMilliseconds
      var stamps = clock.stamps
      stamps.bootMilliseconds -= age
      stamps.wallMilliseconds -= age
      entries.append(
        JournalEntry(key: row.key, content: row.content, stamps: stamps, ttl: row.ttl)
      )
    }
    logs[partition]?.last = claim.asPredecessor
    logs[partition]?.phase = .open
    logs[partition]?.appended = contents.rows.count + frames.count
    effects.append(.opened(partition, epoch: epoch, entries))
    writeNext(in: partition)
  }

  private mutating func retryLater(_ partition: Partition, _ clock: JournalClock) {
    logs[partition]?.retryAt = clock.moment.advanced(by: Self.retry)
  }

  // MARK: - Keeping logs short

  /// Appends a snapshot when the log is much longer than what it holds.
  private mutating func compact(_ partition: Partition, _ clock: JournalClock) {
    guard let log = logs[partition], log.isLong, log.waiting.isEmpty else { return }
    for frame in log.snapshot(clock) {
      logs[partition]?.waiting.append(.init(frame: frame, isWork: false))
    }
  }

  /// Does without what a complete snapshot replaces.
  private mutating func compacted(_ partition: Partition, _ frame: LogFrame, at sequence: UInt64) {
    guard case .snapshot(let part, let count) = frame.kind else { return }
    if part == 0 { logs[partition]?.snapshotStart = sequence }
    guard part + 1 == count, let start = logs[partition]?.snapshotStart, start > 0 else { return }
    logs[partition]?.appended = 0
    logs[partition]?.snapshotStart = 0
    logs[partition]?.base = start
    let outdated = logs[partition]?.purgesBefore ?? 0
    if outdated == 0 {
      logs[partition]?.purgesBefore = start
    } else if sequence > outdated + settings.keptBehind {
      effects.append(.purge(partition, before: outdated))
      logs[partition]?.purgesBefore = start
    }
  }
}

extension LogFrame.Row {
  /// The row of a value, whose age is calculated at `clock`.
  init(_ entry: JournalEntry, _ clock: JournalClock) {
    let age: Int64 =
      switch entry.origin {
      case .accepted(let moment): moment.duration(to: clock.moment).wholeMilliseconds
      case .stored(let stamps): clock.stamps.bootMilliseconds - stamps.bootMilliseconds
      }
    self.init(
      key: entry.key,
      content: entry.content,
      age: .milliseconds(max(0, age)),
      ttl: entry.ttl
    )
  }
}
