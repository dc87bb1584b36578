// Settle
// SPDX-License-Identifier: Apache-2.0

package import Durability
package import LastOut

/// The journal as the event loop sees it: values in, news out, and a deadline to come back at.
///
/// Belongs to the loop's thread. Nothing here waits for the disk but ``init(path:settings:vfs:onResult:)``,
/// which reads the file before the loop runs. The way of a value: ``accept(_:for:ttl:at:isUrgent:)``
/// gives it a sequence number; its reply is due with ``JournalNews/durable(through:)``;
/// ``sending(_:sequence:)`` and ``finished(_:through:at:)`` follow its way out. After each batch of
/// events, and whenever ``nextDeadline`` passes or `onResult` was called, the owner calls
/// ``advance(to:)`` and handles ``takeNews()``.
package final class Journal {
  private var plan: JournalPlan
  private let writer: JournalWriter
  private var replayAt: Moment?
  /// Gives the values that the owner keeps; to be set before one is accepted.
  package var keptValue: (JournalKey, UInt64) -> any JournalValue = JournalPlan.nobodysValue

  /// Opens or makes the file and starts the writer's thread.
  ///
  /// A disk that cannot be written, or a damaged file, is no error: ``fault`` or news tell.
  /// `onResult` is called on the writer's thread and must only wake the loop.
  ///
  /// - Throws: When the file must not be used: a newer format, another program's, a link, open to
  ///   others, or in use.
  package init(
    path: String,
    settings: JournalPlan.Settings = .init(),
    vfs: String? = nil,
    onResult: @escaping @Sendable () -> Void
  ) throws(JournalRefusal) {
    let clock = SystemClock.read()
    var store = JournalStore(path: path, vfs: vfs)
    do throws(JournalProblem) {
      plan = JournalPlan(settings: settings, contents: try store.open(clock: clock))
    } catch {
      switch error {
      case .refused(let refusal): throw refusal
      case .fault(let fault): plan = JournalPlan(settings: settings, fault: fault, at: clock.moment)
      }
    }
    do throws(JournalFault) {
      writer = try JournalWriter(store: store, onResult: onResult)
    } catch {
      throw .noThread(path: path, reason: error.description)
    }
    replayAt = clock.moment
  }

  deinit {
    writer.beginClosing()
  }

  /// Why nothing can be written at the moment; `nil` while all is well.
  package var fault: JournalFault? { plan.fault }

  /// Whether there is a ``fault``; asked with every change.
  package var isBroken: Bool { plan.fault != nil }

  /// The number of a key, given with its first mention.
  package func number(of name: String) -> JournalKey { plan.number(of: name) }

  /// Why a change of `key` must be refused now; `nil` when it may be accepted.
  ///
  /// Not `nil` only while nothing can be written and a crash would bring back an older value.
  package func refusal(of key: String, at now: Moment) -> JournalFault? {
    plan.refusal(of: key, at: now)
  }

  /// Takes the newest value of a key; `value` is what the owner needs to send it after a restart.
  package func accept(
    _ value: [UInt8],
    for key: String,
    ttl: Duration,
    at now: Moment,
    isUrgent: Bool = false
  ) -> JournalPlan.Receipt {
    plan.accept(value, for: key, ttl: ttl, at: now, isUrgent: isUrgent)
  }

  /// Takes the newest value of a key; ``keptValue`` is asked for it when it is written.
  ///
  /// `replaced`: the sequence number of the one before, when that is over with this.
  ///
  /// - Returns: Its sequence number, also while there is a ``fault``.
  package func accept(
    _ key: JournalKey,
    replacing replaced: UInt64? = nil,
    at now: Moment,
    expiresAt: Moment,
    isUrgent: Bool
  ) -> UInt64 {
    plan.accept(key, replacing: replaced, at: now, expiresAt: expiresAt, isUrgent: isUrgent)
  }

  /// A value was handed to the broker.
  package func sending(_ key: JournalKey, sequence: UInt64) {
    plan.sending(key, sequence: sequence)
  }

  /// Everything of a key up to `sequence` is acknowledged, expired or superseded for good.
  ///
  /// - Returns: Whether its replies are due at once, without waiting for a commit.
  @discardableResult
  package func finished(_ key: String, through sequence: UInt64, at now: Moment) -> Bool {
    plan.finished(key, through: sequence, at: now)
  }

  /// One value is over; others of its key are not concerned.
  ///
  /// `promptly`: a crash must not send it, so its row goes with the next commit.
  ///
  /// - Returns: Whether the key's replies are due at once, without waiting for a commit.
  @discardableResult
  package func ended(
    _ key: JournalKey,
    _ sequence: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    plan.ended(key, sequence, at: now, promptly: promptly)
  }

  /// Whether the disk surely has the key's newest value.
  package func keeps(_ key: String) -> Bool { plan.keeps(key) }

  /// The value that waits was cancelled: a crash must not send it.
  package func withdrawn(
    _ key: String,
    through sequence: UInt64,
    at now: Moment,
    isUrgent: Bool = false
  ) {
    plan.withdrawn(key, through: sequence, at: now, isUrgent: isUrgent)
  }

  /// Whether a crash now would send an older value of the key than `sequence`.
  package func holdsOlder(_ key: JournalKey, than sequence: UInt64, at now: Moment) -> Bool {
    plan.holdsOlder(key, than: sequence, at: now)
  }

  package func holdsOlder(_ key: String, than sequence: UInt64, at now: Moment) -> Bool {
    plan.holdsOlder(key, than: sequence, at: now)
  }

  /// From when on a crash does not send what the disk has of the key; `nil` when not known.
  package func rowExpiry(of key: JournalKey) -> Moment? { plan.rowExpiry(of: key) }

  /// Everything accepted up to here is durable, superseded or finished.
  package var durableThrough: UInt64 { plan.durableThrough }

  /// When ``advance(to:)`` has something to do next; `nil` when nothing waits but the writer.
  package var nextDeadline: Moment? {
    guard let replayAt else { return plan.nextDeadline }
    return min(replayAt, plan.nextDeadline ?? replayAt)
  }

  /// Takes the writer's results and hands it what is due.
  ///
  /// - Returns: Whether the writer had ended something.
  @discardableResult
  package func advance(to now: Moment) -> Bool {
    let results = writer.takeResults()
    for result in results {
      plan.completed(result, at: now)
      if plan.awaitsReplay { replayAt = now }
    }
    if let due = replayAt, due <= now {
      plan.decideReplay(SystemClock.read())
      replayAt = plan.awaitsReplay ? now.advanced(by: .seconds(1)) : nil
    }
    if let work = plan.nextWork(at: now, value: keptValue) { writer.submit(work) }
    return !results.isEmpty
  }

  /// What happened since the last call, in order.
  package func takeNews() -> [JournalNews] {
    guard !plan.news.isEmpty else { return [] }
    var news: [JournalNews] = []
    swap(&news, &plan.news)
    return news
  }

  /// Everything is to be written at the next chance: the way out.
  package func flush(at now: Moment) {
    plan.flush(at: now)
  }

  /// Nothing is being written, and nothing waits to be.
  package var isIdle: Bool { plan.isIdle }

  /// Nothing can be written, and no attempt is under way.
  package var isStuck: Bool { plan.isStuck }

  /// Ends the writer after the work it has; `onResult` is called once more, then ``isClosed``.
  package func beginClosing() {
    writer.beginClosing()
  }

  /// The file is closed.
  package var isClosed: Bool { writer.isClosed }
}
