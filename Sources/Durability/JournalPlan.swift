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

  /// The work that the writer has.
  struct Running: Sendable {
    /// Every value up to here is in it, was superseded or finished.
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
  /// What happened; the owner takes it out.
  package var news: [JournalNews] = []
  /// Why nothing can be written at the moment; `nil` while all is well.
  package internal(set) var fault: JournalFault?
  /// Everything accepted up to here is durable, superseded or finished.
  package internal(set) var durableThrough: UInt64 = 0
  /// Counts the values accepted since the start of the file.
  package internal(set) var sequence: UInt64 = 0

  /// What is known of each key, by its number.
  var slots: [Slot] = []
  /// The keys' names, and the way back.
  package internal(set) var names: [String] = []
  var numbers: [String: JournalKey] = [:]
  /// Keys whose row may differ from what is wanted.
  var dirty: [JournalKey] = []
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
      let key = number(of: entry.key)
      self[key].newest = KeptValue(entry)
      self[key].disk = DiskRow(sequence: entry.sequence, expiresAt: entry.expiresAt)
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
  package func refusal(of key: JournalKey, at now: Moment) -> JournalFault? {
    guard let fault, self[key].disk?.isLive(at: now) == true else { return nil }
    return fault
  }

  /// Takes the newest value of a key; its reply waits for ``JournalNews/durable(through:)``.
  ///
  /// `given` is `nil` where the owner keeps the value, which ``nextWork(at:value:)`` then asks for.
  /// `isUrgent`: the next commit does not wait for `commit` to pass.
  package mutating func accept(
    _ given: [UInt8]? = nil,
    for key: JournalKey,
    at now: Moment,
    expiresAt: Moment,
    isUrgent: Bool = false
  ) -> Receipt {
    let given = given.map { KeptValue.Given(content: .bytes($0)) }
    let sequence = take(given, for: key, at: now, expiresAt: expiresAt, isUrgent: isUrgent)
    return Receipt(sequence: sequence, fault: fault)
  }

  /// The same, of which only the sequence number is asked.
  ///
  /// `replaced`: the value before, if it is the newest and over with this, as ``ended(_:_:at:promptly:)``
  /// afterwards would say.
  mutating func take(
    _ given: KeptValue.Given? = nil,
    for key: JournalKey,
    replacing replaced: UInt64? = nil,
    at now: Moment,
    expiresAt: Moment,
    isUrgent: Bool
  ) -> UInt64 {
    sequence += 1
    let isUndecided = !undecided.isEmpty && isUndecided(key)
    let isNewlyDirty = self[key].accept(
      KeptValue(sequence: sequence, acceptedAt: now, expiresAt: expiresAt, given: given),
      replacing: isUndecided ? self[key].newest?.sequence : replaced
    )
    if isNewlyDirty { dirty.append(key) }
    want(at: now)
    if isUrgent { earliestCommit = min(earliestCommit, now) }
    return sequence
  }

  /// Accepts the newest value of a key, which the owner keeps.
  ///
  /// - Returns: Its sequence number, also while there is a ``fault``.
  package mutating func accept(
    _ key: JournalKey,
    replacing replaced: UInt64?,
    at now: Moment,
    expiresAt: Moment,
    isUrgent: Bool
  ) -> UInt64 {
    take(for: key, replacing: replaced, at: now, expiresAt: expiresAt, isUrgent: isUrgent)
  }

  /// A value was handed to the broker: it stays journalled even when a newer one is withdrawn.
  package mutating func sending(_ key: JournalKey, sequence: UInt64) {
    self[key].left(sequence)
  }

  /// Everything of a key up to `sequence` is acknowledged, expired or superseded for good.
  ///
  /// - Returns: Whether its replies are due now: nothing of the key is or can get onto the disk, so
  ///   no commit has to be waited for.
  @discardableResult
  package mutating func finished(
    _ key: JournalKey,
    through sequence: UInt64,
    at now: Moment
  ) -> Bool {
    if self[key].isEmpty { return true }
    guard self[key].drop(through: sequence) else { return false }
    guard self[key].wanted == nil else {
      touch(key)  // Nothing to write unless the other value is not on the disk.
      return false
    }
    if self[key].isEmpty { return true }
    touch(key)
    want(at: now.advanced(by: settings.removal))
    return self[key].disk == nil
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
    _ key: JournalKey,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    if self[key].isEmpty { return true }
    guard self[key].drop(sequence) else { return false }
    if self[key].isEmpty { return true }
    touch(key)
    guard self[key].wanted == nil else {
      if promptly { want(at: now) }
      return false
    }
    want(at: promptly ? now : now.advanced(by: settings.removal))
    return self[key].disk == nil
  }

  /// Whether the disk surely has the key's newest value.
  package func keeps(_ key: JournalKey) -> Bool {
    guard fault == nil, running == nil, let wanted = self[key].wanted else { return false }
    return self[key].disk?.sequence == wanted.sequence
  }

  /// The value that waits was cancelled: a crash must not send it.
  ///
  /// Its row goes with the next commit, or is replaced by the value that is on its way.
  package mutating func withdrawn(
    _ key: JournalKey,
    through sequence: UInt64,
    at now: Moment,
    isUrgent: Bool = false
  ) {
    guard let value = self[key].newest, value.sequence <= sequence else { return }
    self[key].newest = nil
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
  package func holdsOlder(_ key: JournalKey, than sequence: UInt64, at now: Moment) -> Bool {
    guard let disk = self[key].disk else { return false }
    return disk.sequence < sequence && disk.isLive(at: now)
  }

  /// From when on a crash does not send what the disk has of the key; `nil` when not known.
  package func rowExpiry(of key: JournalKey) -> Moment? { self[key].disk?.expiresAt }

  /// Whether `sequence` is still the newest of its key.
  package func isNewest(_ key: JournalKey, _ sequence: UInt64) -> Bool {
    self[key].newest?.sequence == sequence
  }

  /// Nothing is being written, and nothing waits to be.
  package var isIdle: Bool { running == nil && dirty.isEmpty }

  /// Nothing can be written, and no attempt is under way.
  package var isStuck: Bool { fault != nil && running == nil }

  /// Keys that a restart would send again, and those whose rows are still to be removed.
  package var keyCount: Int { slots.count { !$0.isEmpty } }

  // MARK: - Shared

  subscript(key: JournalKey) -> Slot {
    _read { yield slots[Int(key.rawValue)] }
    _modify { yield &slots[Int(key.rawValue)] }
  }

  /// Whether nobody has taken up the key's newest value, one of an earlier process, yet.
  private func isUndecided(_ key: JournalKey) -> Bool {
    guard let sequence = self[key].newest?.sequence else { return false }
    return undecided.contains { $0.sequence == sequence && $0.key == names[Int(key.rawValue)] }
  }

  /// Ends the stored value of a key that was not resumed yet: a newer command of another key ends it.
  package mutating func discardUndecided(_ key: JournalKey, at now: Moment) {
    guard !undecided.isEmpty, isUndecided(key), let value = self[key].newest else { return }
    _ = ended(key, value.sequence, at: now, promptly: true)
  }

  /// Notes that a key's row may differ from what is wanted.
  mutating func touch(_ key: JournalKey) {
    guard !self[key].isDirty else { return }
    self[key].isDirty = true
    dirty.append(key)
  }

  mutating func want(at moment: Moment) {
    wantedAt = min(wantedAt ?? moment, moment)
  }
}
