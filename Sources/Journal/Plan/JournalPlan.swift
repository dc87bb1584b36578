// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Decides what is written to the journal and when, and which replies are due.
///
/// It has no clock and does no I/O. Accepted values, acknowledgements and the writer's results go
/// in with the time; ``nextWork(at:)`` hands out one piece of work at a time, and ``news`` says
/// what the owner may tell. After any call the owner takes ``news`` out and arms a timer for
/// ``nextDeadline``.
///
/// One row per key is on the disk: the newest accepted value, until it was acknowledged. The first
/// change commits at once; later ones when the commit before has ended and `commit` has passed
/// since it began. Rows of acknowledged values are removed with the next commit, at the latest
/// after `removal`.
package struct JournalPlan: Sendable {
  package struct Settings: Hashable, Sendable {
    /// The least time between the starts of two commits.
    package var commit: Duration = .milliseconds(100)
    /// How long the removal of an acknowledged value may wait for a commit to ride with.
    package var removal: Duration = .seconds(1)
    /// The first wait before another attempt after a failure; it doubles with each.
    package var retry: Duration = .milliseconds(500)
    package var longestRetry: Duration = .seconds(30)

    package init() {}
  }

  /// What became of a value when it was accepted.
  package struct Receipt: Hashable, Sendable {
    package var sequence: UInt64
    /// Not `nil`: the value is held in memory only, and its reply is due now and must say so.
    package var fault: JournalFault?
  }

  /// A row that a crash could bring back.
  struct DiskRow: Hashable, Sendable {
    /// The oldest value that the row may have.
    var sequence: UInt64
    /// From when on nothing in the row would be sent again; `nil` when not known.
    var expiresAt: Moment?

    func isLive(at now: Moment) -> Bool { expiresAt.map { now < $0 } ?? true }
  }

  /// What is known of one key; a slot without anything is dropped.
  struct Slot: Sendable {
    /// The newest accepted value that has not been handed to the broker.
    var newest: JournalEntry?
    /// An older one that has not left either, and may still: it is on its road while the newest
    /// waits for quiet.
    var earlier: JournalEntry?
    /// The value that the broker has not acknowledged yet.
    var underWay: JournalEntry?
    var disk: DiskRow?
    /// In ``dirty``.
    var isDirty = false

    /// What the disk should have.
    var wanted: JournalEntry? { newest ?? earlier ?? underWay }
    var isEmpty: Bool { wanted == nil && disk == nil && !isDirty }
  }

  /// The work that the writer has.
  struct Running: Sendable {
    /// Every value up to here is in it, was superseded or finished.
    var through: UInt64
    var puts: [(key: String, row: DiskRow)] = []
    var removals: [String] = []
    var kind: Kind

    enum Kind: Sendable {
      case commit
      case rebuild
      case reopen
    }
  }

  package let settings: Settings
  /// What happened; the owner takes it out.
  package var news: [JournalNews] = []
  /// Why nothing can be written at the moment; `nil` while all is well.
  package internal(set) var fault: JournalFault?
  /// Everything accepted up to here is durable, superseded or finished.
  package internal(set) var durableThrough: UInt64 = 0
  /// Counts the values accepted since the start of the file.
  package internal(set) var sequence: UInt64 = 0

  var slots: [String: Slot] = [:]
  /// Keys whose row may differ from what is wanted.
  var dirty: [String] = []
  /// When something first wants to be written; `nil` when nothing does.
  var wantedAt: Moment?
  /// No commit begins before this.
  var earliestCommit = Moment.zero
  var running: Running?
  /// The file has been read.
  var isLoaded: Bool
  var retryAt = Moment.zero
  var nextRetry: Duration
  /// Values of an earlier process of which ``decideReplay(_:)`` has not said what becomes of them.
  var undecided: [JournalEntry] = []
  /// When those whose age cannot be told are given up; set at the first look.
  var patienceEnds: Moment?

  /// A plan for a file that holds `entries`.
  package init(settings: Settings = Settings(), contents: JournalContents) {
    self.init(settings: settings, isLoaded: true)
    for entry in contents.entries {
      var slot = Slot()
      slot.newest = entry
      slot.disk = DiskRow(sequence: entry.sequence, expiresAt: entry.expiresAt)
      slots[entry.key] = slot
      sequence = max(sequence, entry.sequence)
    }
    durableThrough = sequence
    undecided = contents.entries
    if let found = contents.setAside { news.append(.setAside(found)) }
  }

  /// A plan for a file that could not be opened.
  package init(settings: Settings = Settings(), fault: JournalFault, at now: Moment) {
    self.init(settings: settings, isLoaded: false)
    fail(fault, at: now)
  }

  private init(settings: Settings, isLoaded: Bool) {
    self.settings = settings
    self.isLoaded = isLoaded
    nextRetry = settings.retry
  }

  // MARK: - Events

  /// Why a change of `key` must be refused now; `nil` when it may be accepted.
  ///
  /// While nothing can be written and the disk has a live row of the key, a newer value cannot be
  /// accepted: a crash would send the older one after it. Rows lose that force with their `ttl`.
  package func refusal(of key: String, at now: Moment) -> JournalFault? {
    guard let fault, slots[key]?.disk?.isLive(at: now) == true else { return nil }
    return fault
  }

  /// Takes the newest value of a key; its reply waits for ``JournalNews/durable(through:)``.
  ///
  /// `isUrgent`: the next commit does not wait for `commit` to pass.
  package mutating func accept(
    _ value: [UInt8],
    for key: String,
    ttl: Duration,
    at now: Moment,
    isUrgent: Bool = false
  ) -> Receipt {
    sequence += 1
    if let older = slots[key]?.newest, slots[key]?.earlier == nil, !isUndecided(older) {
      slots[key]?.earlier = older
    }
    slots[key, default: Slot()].newest = JournalEntry(
      key: key,
      sequence: sequence,
      value: value,
      origin: .accepted(at: now),
      ttl: ttl
    )
    touch(key)
    want(at: now)
    if isUrgent { earliestCommit = min(earliestCommit, now) }
    return Receipt(sequence: sequence, fault: fault)
  }

  /// A value was handed to the broker: it stays journalled even when a newer one is withdrawn.
  package mutating func sending(_ key: String, sequence: UInt64) {
    if let newest = slots[key]?.newest, newest.sequence == sequence {
      slots[key]?.underWay = newest
      slots[key]?.newest = nil
      slots[key]?.earlier = nil  // Nothing older may follow.
    } else if let earlier = slots[key]?.earlier, earlier.sequence == sequence {
      slots[key]?.underWay = earlier
      slots[key]?.earlier = nil
    }
  }

  /// Everything of a key up to `sequence` is acknowledged, expired or superseded for good.
  ///
  /// - Returns: Whether its replies are due now: nothing of the key is or can get onto the disk, so
  ///   no commit has to be waited for.
  @discardableResult
  package mutating func finished(_ key: String, through sequence: UInt64, at now: Moment) -> Bool {
    guard var slot = slots[key] else { return true }
    var changed = false
    if let entry = slot.newest, entry.sequence <= sequence {
      slot.newest = nil
      changed = true
    }
    if let entry = slot.earlier, entry.sequence <= sequence {
      slot.earlier = nil
      changed = true
    }
    if let entry = slot.underWay, entry.sequence <= sequence {
      slot.underWay = nil
      changed = true
    }
    guard changed else { return false }
    slots[key] = slot
    guard slot.wanted == nil else {
      touch(key)  // Nothing to write unless the other value is not on the disk.
      return false
    }
    if slot.disk == nil, !slot.isDirty {
      slots[key] = nil
      return true
    }
    touch(key)
    want(at: now.advanced(by: settings.removal))
    return slot.disk == nil
  }

  /// One value is over, whatever became of it; others of its key are not concerned.
  ///
  /// `promptly`: its row goes with the next commit, because a crash must not send it; else it may
  /// wait for `removal`, because sending it once more does no harm.
  ///
  /// - Returns: Whether the key's replies are due now: nothing of it is or can get onto the disk, so
  ///   no commit has to be waited for.
  @discardableResult
  package mutating func ended(
    _ key: String,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    guard var slot = slots[key] else { return true }
    if slot.newest?.sequence == sequence {
      slot.newest = nil
    } else if slot.earlier?.sequence == sequence {
      slot.earlier = nil
    } else if slot.underWay?.sequence == sequence {
      slot.underWay = nil
    } else {
      return false
    }
    if slot.isEmpty {
      slots[key] = nil
      return true
    }
    slots[key] = slot
    touch(key)
    guard slot.wanted == nil else {
      if promptly { want(at: now) }
      return false
    }
    want(at: promptly ? now : now.advanced(by: settings.removal))
    return slot.disk == nil
  }

  /// Whether the disk surely has the key's newest value.
  package func keeps(_ key: String) -> Bool {
    guard fault == nil, running == nil, let slot = slots[key], let wanted = slot.wanted else {
      return false
    }
    return slot.disk?.sequence == wanted.sequence
  }

  /// The value that waits was cancelled: a crash must not send it.
  ///
  /// Its row goes with the next commit, or is replaced by the value that is on its way.
  package mutating func withdrawn(
    _ key: String,
    through sequence: UInt64,
    at now: Moment,
    isUrgent: Bool = false
  ) {
    guard let entry = slots[key]?.newest, entry.sequence <= sequence else { return }
    slots[key]?.newest = nil
    touch(key)
    want(at: now)
    if isUrgent { earliestCommit = min(earliestCommit, now) }
  }

  /// Everything is to be written at the next chance: the way out.
  package mutating func flush(at now: Moment) {
    earliestCommit = min(earliestCommit, now)
    if !dirty.isEmpty { want(at: now) }
    if fault != nil { retryAt = min(retryAt, now) }
  }

  // MARK: - Queries

  /// Whether a crash now would send an older value of the key than `sequence`.
  ///
  /// A value that leaves for the broker while this is true could be followed by the older one.
  package func holdsOlder(_ key: String, than sequence: UInt64, at now: Moment) -> Bool {
    guard let disk = slots[key]?.disk else { return false }
    return disk.sequence < sequence && disk.isLive(at: now)
  }

  /// Whether `sequence` is still the newest of its key.
  package func isNewest(_ key: String, _ sequence: UInt64) -> Bool {
    slots[key]?.newest?.sequence == sequence
  }

  /// Nothing is being written, and nothing waits to be.
  package var isIdle: Bool { running == nil && dirty.isEmpty }

  /// Nothing can be written, and no attempt is under way.
  package var isStuck: Bool { fault != nil && running == nil }

  /// Keys that a restart would send again, and those whose rows are still to be removed.
  package var keyCount: Int { slots.count }

  // MARK: - Shared

  /// Whether nobody has taken up a value of an earlier process yet.
  private func isUndecided(_ entry: JournalEntry) -> Bool {
    undecided.contains { $0.key == entry.key && $0.sequence == entry.sequence }
  }

  /// Notes that a key's row may differ from what is wanted.
  mutating func touch(_ key: String) {
    guard slots[key]?.isDirty == false else { return }
    slots[key]?.isDirty = true
    dirty.append(key)
  }

  mutating func want(at moment: Moment) {
    wantedAt = min(wantedAt ?? moment, moment)
  }
}
