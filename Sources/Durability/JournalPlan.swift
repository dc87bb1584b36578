// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Decides what is written to the journal and when, and which replies are due.
///
/// It has no clock and does no I/O. Accepted values, acknowledgements and the writer's results go
/// in with the time; ``nextWork(at:value:)`` returns one piece of work at a time, and ``events``
/// say which replies are due. After any call the owner takes the ``events`` and arms a timer for
/// ``nextDeadline``; when ``replayDeadline`` passes it reads the clocks for ``decideReplay(_:)``.
///
/// The disk holds one row per key: the newest accepted value, until it is acknowledged. The first
/// change commits at once; later ones when the commit before has ended and `commit` has passed
/// since it began. Rows of acknowledged values are removed with the next commit, at the latest
/// after `removal`.
package struct JournalPlan: Sendable {
  package struct Settings: Hashable, Sendable {
    /// The least time between the starts of two commits.
    package var commit: Duration = .milliseconds(100)
    /// How long the removal of an acknowledged value may wait for the next commit.
    package var removal: Duration = .seconds(1)
    /// The first wait before another attempt after a failure; it doubles with each.
    package var retry: Duration = .milliseconds(500)
    package var longestRetry: Duration = .seconds(30)

    package init() {}
  }

  /// The writer's current work.
  struct Running: Sendable {
    /// Every value up to here is in it, was superseded or has ended.
    var through: UInt64
    var puts: [(key: JournalKey, row: DiskRow)] = []
    var removals: [JournalKey] = []
    var kind: Kind

    enum Kind: Sendable {
      case commit
      case rebuild
      case reopen
    }
  }

  package let settings: Settings
  /// What the owner must handle, in order; ``dequeueEvents()`` empties it.
  package var events: [JournalEvent] = []
  /// Why nothing can be written at the moment; `nil` while the disk works.
  package internal(set) var fault: JournalFault?
  /// Everything accepted up to here is durable, superseded or ended.
  package internal(set) var durableThrough: UInt64 = 0
  /// Counts the values accepted since the start of the file; see ``reserved``.
  package internal(set) var sequence: UInt64 = 0
  /// When ``decideReplay(_:)`` wants another reading of the clocks; `nil` when nothing is
  /// undecided.
  package internal(set) var replayDeadline: Moment?

  /// What is known of each key.
  var keys = JournalKeyTable()
  var schedule: CommitSchedule
  var running: Running?
  /// Whether the file has been read.
  package internal(set) var isLoaded: Bool
  /// Values of an earlier process that ``decideReplay(_:)`` has not decided.
  package internal(set) var undecided: [JournalEntry] = []
  /// When those whose age is still unknown expire; `nil` before the first look.
  var holdEnds: Moment?

  /// The sequence numbers up to here are for the values of a file that opens late: those are older
  /// than anything that was accepted before it opened.
  static let reserved: UInt64 = 1 << 32

  /// A plan for a file that holds `contents`.
  package init(settings: Settings = Settings(), contents: JournalContents) {
    self.init(settings: settings, isLoaded: true)
    for entry in contents.entries {
      let key = number(of: entry.key)
      self[key].newest = KeptValue(entry)
      self[key].isUnresumed = true
      self[key].disk = DiskRow(sequence: entry.sequence, expiresAt: entry.expiresAt)
      sequence = max(sequence, entry.sequence)
    }
    durableThrough = sequence
    undecided = contents.entries
    replayDeadline = undecided.isEmpty ? nil : .zero
    if let found = contents.setAside { events.append(.setAside(found)) }
  }

  /// A plan for a file that could not be opened.
  package init(settings: Settings = Settings(), fault: JournalFault, at now: Moment) {
    self.init(settings: settings, isLoaded: false)
    fail(fault, at: now)
  }

  private init(settings: Settings, isLoaded: Bool) {
    self.settings = settings
    self.isLoaded = isLoaded
    schedule = CommitSchedule(settings)
    if !isLoaded {
      sequence = Self.reserved
      durableThrough = Self.reserved
    }
  }

  // MARK: - Keys

  /// The number of a key, assigned at its first mention.
  package mutating func number(of name: String) -> JournalKey { keys.number(of: name) }

  /// The keys' names by number.
  package var names: [String] { keys.names }

  // MARK: - Changes

  /// Why a change of `key` must be refused now; `nil` when it may be accepted.
  ///
  /// While nothing can be written and the disk has a live row of the key, a newer value cannot be
  /// accepted: a crash would send the older one after it. A row is live until its `ttl` has passed.
  package func refusal(of key: JournalKey, at now: Moment) -> JournalFault? {
    guard let fault, self[key].disk?.isLive(at: now) == true else { return nil }
    return fault
  }

  /// Accepts the newest value of a key; its reply is due with ``JournalEvent/durable(through:)``.
  ///
  /// `replaced`: the sequence number of the value before, if it is the newest and ends with this
  /// one; the same as ``ended(_:_:at:promptly:)`` for it afterwards. `isUrgent`: the next commit
  /// does not wait for `commit` to pass.
  ///
  /// - Returns: The value's sequence number, also while there is a ``fault``.
  package mutating func accept(
    _ key: JournalKey,
    replacing replaced: UInt64? = nil,
    at now: Moment,
    expiresAt: Moment,
    isUrgent: Bool
  ) -> UInt64 {
    sequence += 1
    self[key].accept(
      KeptValue(
        sequence: sequence,
        acceptedAt: now,
        expiresAt: expiresAt,
        isUrgent: isUrgent
      ),
      replacing: self[key].isUnresumed ? self[key].newest?.sequence : replaced
    )
    keys.markDirty(key)
    schedule.want(at: now)
    if isUrgent { schedule.hurry(at: now) }
    return sequence
  }

  /// Records that a value was sent: its row stays even when a newer value is cancelled.
  package mutating func sending(_ key: JournalKey, sequence: UInt64) {
    self[key].sending(sequence)
  }

  /// Records that one value has ended; others of its key are unaffected.
  ///
  /// `promptly`: its row goes with the next commit, because a crash must not send it. Otherwise it
  /// may wait for `removal`, because sending the value once more is harmless.
  ///
  /// - Returns: Whether the key's replies are due now: the disk has no row of the key and gets
  ///   none, so there is no commit to wait for.
  @discardableResult
  package mutating func ended(
    _ key: JournalKey,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    if self[key].isEmpty { return true }
    guard self[key].remove(sequence) else { return false }
    if self[key].isEmpty { return true }
    keys.markDirty(key)
    schedule.want(at: promptly ? now : now.advanced(by: settings.removal))
    return self[key].wanted == nil && self[key].disk == nil
  }

  /// Takes over values that another process of a cluster accepted, in their order.
  ///
  /// Their keys have none here. ``decideReplay(_:)`` decides which are sent.
  package mutating func takeOver(_ entries: [JournalEntry], at now: Moment) {
    for entry in entries {
      let key = number(of: entry.key)
      sequence += 1
      var entry = entry
      entry.sequence = sequence
      self[key] = JournalSlot()
      self[key].newest = KeptValue(entry)
      self[key].isUnresumed = true
      let row = DiskRow(sequence: sequence, expiresAt: nil)
      self[key].disk = row
      // A rebuild that is in progress leaves it where it is.
      if running?.kind == .rebuild { running?.puts.append((key, row)) }
      undecided.append(entry)
    }
    if !undecided.isEmpty { replayDeadline = min(replayDeadline ?? now, now) }
  }

  /// Wants a value again that a newer one has replaced, because that one could not be kept.
  package mutating func restore(
    _ key: JournalKey,
    sequence: UInt64,
    acceptedAt: Moment,
    expiresAt: Moment,
    isUrgent: Bool
  ) {
    guard self[key].newest == nil else { return }
    self[key].newest = KeptValue(
      sequence: sequence,
      acceptedAt: acceptedAt,
      expiresAt: expiresAt,
      isUrgent: isUrgent
    )
    keys.markDirty(key)
  }

  /// Forgets a key: another process of a cluster has it, and what is stored of it.
  package mutating func forget(_ key: JournalKey) {
    let isDirty = self[key].isDirty
    self[key] = JournalSlot()
    self[key].isDirty = isDirty
    running?.puts.removeAll { $0.key == key }
    running?.removals.removeAll { $0 == key }
    let name = keys.name(of: key)
    undecided.removeAll { $0.key == name }
    guard undecided.isEmpty else { return }
    holdEnds = nil
    replayDeadline = nil
  }

  /// Writes everything that waits as soon as the writer is free; called at shutdown.
  package mutating func flush(at now: Moment) {
    schedule.hurry(at: now)
    if keys.hasDirty { schedule.want(at: now) }
    if fault != nil { schedule.retry(at: now) }
  }

  /// Returns the events since the last call.
  package mutating func dequeueEvents() -> [JournalEvent] {
    events.isEmpty ? [] : exchange(&events, with: [])
  }

  // MARK: - Queries

  /// Every value up to here is written or being written, was superseded or has ended.
  package var writtenThrough: UInt64 { running?.through ?? durableThrough }

  /// Whether a crash now would send an older value of the key than `sequence`.
  ///
  /// A value that is sent while this is true could be followed by the older one. `isUrgentOnly`:
  /// only an urgent one counts.
  package func holdsOlder(
    _ key: JournalKey,
    than sequence: UInt64,
    isUrgentOnly: Bool = false,
    at now: Moment
  ) -> Bool {
    guard let disk = self[key].disk, disk.isUrgent || !isUrgentOnly else { return false }
    return disk.sequence < sequence && disk.isLive(at: now)
  }

  /// The moment from which a restart sends nothing of the key's row; `nil` when unknown.
  package func rowExpiry(of key: JournalKey) -> Moment? { self[key].disk?.expiresAt }

  /// Whether what the disk has of a key is what it should have.
  package func isWritten(_ key: JournalKey) -> Bool {
    guard running == nil, fault == nil, !self[key].isDirty else { return false }
    return self[key].wanted?.sequence == self[key].disk?.sequence
  }

  /// Whether the disk has the key's newest value for certain.
  package func keeps(_ key: JournalKey) -> Bool {
    guard fault == nil, running == nil, let wanted = self[key].wanted else { return false }
    return self[key].disk?.sequence == wanted.sequence
  }

  /// Whether nothing is being written or waits to be.
  package var isIdle: Bool { running == nil && !keys.hasDirty }

  /// Whether nothing can be written and no attempt is in progress.
  package var isStuck: Bool { fault != nil && running == nil }

  // MARK: - Shared

  subscript(key: JournalKey) -> JournalSlot {
    _read { yield keys[key] }
    _modify { yield &keys[key] }
  }

  /// Whether `sequence` is the newest value of its key.
  func isNewest(_ key: JournalKey, _ sequence: UInt64) -> Bool {
    self[key].newest?.sequence == sequence
  }
}

/// Which values of an earlier process are sent.
extension JournalPlan {
  /// How long values of an earlier boot wait for a synchronised clock at most.
  package static let replayPatience: Duration = .seconds(60)
  /// How often the clock is read while they wait.
  static let replayInterval: Duration = .seconds(1)

  /// Whether ``decideReplay(_:)`` has something to decide.
  package var awaitsReplay: Bool { !undecided.isEmpty }

  /// Decides which values of an earlier process are sent; call it when ``replayDeadline`` passes.
  ///
  /// Values whose age is unknown are held until the clock is synchronised, for 60 s and their time
  /// to live at most, and then expire. A value that a newer one has replaced is not mentioned. The
  /// row of an expired value is deleted with the next removal.
  package mutating func decideReplay(_ clock: JournalClock) {
    guard awaitsReplay else { return }
    let wereHeld = holdEnds != nil
    let end = holdEnds ?? clock.moment.advanced(by: Self.replayPatience)
    holdEnds = end
    var deadline = min(end, clock.moment.advanced(by: Self.replayInterval))
    var held: [JournalEntry] = []
    for entry in undecided {
      let key = number(of: entry.key)
      guard isNewest(key, entry.sequence), case .stored(let stamps) = entry.origin else { continue }
      switch ReplayVerdict(of: stamps, ttl: entry.ttl, now: clock) {
      case .send(let remaining): events.append(.replay(entry, remaining: remaining))
      case .unknown where clock.moment < end:
        held.append(entry)
        let left = entry.ttl - .milliseconds(clock.stamps.bootMilliseconds)
        deadline = min(deadline, clock.moment.advanced(by: left))
      case .unknown: expire(entry, key, because: .clockNotSynchronised, at: clock.moment)
      case .expired(let reason):
        // It ran out while it was held: it is unknown when exactly it expired.
        let isUnknown = wereHeld && !clock.isSynchronised
        expire(entry, key, because: isUnknown ? .clockNotSynchronised : reason, at: clock.moment)
      }
    }
    undecided = held
    if held.isEmpty { holdEnds = nil }
    replayDeadline = held.isEmpty ? nil : deadline
  }

  private mutating func expire(
    _ entry: JournalEntry,
    _ key: JournalKey,
    because reason: ExpiryReason,
    at now: Moment
  ) {
    ended(key, entry.sequence, at: now, promptly: false)
    events.append(.expired(entry, reason))
  }

  // MARK: - The owner

  /// The owner makes a stored value a command again.
  ///
  /// - Returns: `false` when a newer value has replaced it, or a command of another key ended it.
  package mutating func resume(_ key: JournalKey, _ sequence: UInt64) -> Bool {
    guard self[key].isUnresumed, isNewest(key, sequence) else { return false }
    self[key].isUnresumed = false
    return true
  }

  /// The owner says that a key's stored value is urgent; it ends if something newer has taken its
  /// place before the file was read.
  package mutating func markUrgent(_ key: JournalKey, at now: Moment) {
    self[key].newest?.isUrgent = true
    self[key].disk?.isUrgent = true
    guard self[key].endsUrgent, self[key].isUnresumed, let value = self[key].newest else { return }
    ended(key, value.sequence, at: now, promptly: true)
  }

  /// Ends a stored value that was not resumed yet and is not newer than `sequence`: a command of
  /// another key takes its place; with `isUrgentOnly`, that of an urgent one.
  ///
  /// If the file has not been read yet, what is found in it later ends.
  package mutating func discardUnresumed(
    _ key: JournalKey,
    through sequence: UInt64,
    isUrgentOnly: Bool = false,
    at now: Moment
  ) {
    guard isLoaded else {
      if isUrgentOnly { self[key].endsUrgent = true } else { keys.markDirty(key) }
      return
    }
    guard self[key].isUnresumed, let value = self[key].newest, value.sequence <= sequence,
      value.isUrgent || !isUrgentOnly
    else { return }
    ended(key, value.sequence, at: now, promptly: true)
  }
}

/// When the next commit, or the next attempt after a failure, is due.
struct CommitSchedule: Sendable {
  private let settings: JournalPlan.Settings
  /// When the first change that waits wants to be written; `nil` when none waits.
  private var wantedAt: Moment?
  /// The earliest start of the next commit.
  private var earliestCommit = Moment.zero
  private var retryAt = Moment.zero
  private var nextRetry: Duration

  init(_ settings: JournalPlan.Settings) {
    self.settings = settings
    nextRetry = settings.retry
  }

  /// When the next work is due; `nil` when nothing waits.
  func deadline(afterFault: Bool) -> Moment? {
    if afterFault { return retryAt }
    return wantedAt.map { max($0, earliestCommit) }
  }

  /// Records that a change wants to be written at `moment`.
  mutating func want(at moment: Moment) {
    wantedAt = min(wantedAt ?? moment, moment)
  }

  /// Drops the wait for `commit` to pass.
  mutating func hurry(at now: Moment) {
    earliestCommit = min(earliestCommit, now)
  }

  /// Drops the wait for the next attempt.
  mutating func retry(at now: Moment) {
    retryAt = min(retryAt, now)
  }

  /// Records that everything that waits is being collected.
  mutating func collected() { wantedAt = nil }

  /// Records that work begins.
  mutating func began(at now: Moment) {
    earliestCommit = now.advanced(by: settings.commit)
  }

  /// Records that the disk works: the next failure waits the shortest time.
  mutating func succeeded() { nextRetry = settings.retry }

  /// Records a failure; the wait before another attempt doubles with each.
  mutating func failed(at now: Moment) {
    retryAt = now.advanced(by: nextRetry)
    nextRetry = min(nextRetry * 2, settings.longestRetry)
  }
}
