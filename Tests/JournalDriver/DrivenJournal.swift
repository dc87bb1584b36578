// Settle
// SPDX-License-Identifier: Apache-2.0

package import Durability
package import Journal
package import LastOut

/// A journal without a gateway: a ``JournalPlan`` and a ``JournalThread``, joined by the calls that
/// the gateway makes.
///
/// It belongs to one thread. After each batch of events, and whenever ``nextDeadline`` passes or
/// `onResult` was called, the owner calls ``advance(to:)`` and handles ``dequeueEvents()``.
package final class DrivenJournal {
  /// A value that is its own encoding.
  private struct Bytes: JournalValue {
    var bytes: [UInt8]
  }

  private var plan: JournalPlan
  private let thread: JournalThread
  private let clock: @Sendable () -> JournalClock
  /// Returns the values that the owner keeps; to be set before one is accepted.
  package var keptValue: (JournalKey, UInt64) -> any JournalValue = { _, _ in
    preconditionFailure("An owner that has accepted a value can return it.")
  }

  /// Opens or creates the file and starts the writer's thread, as ``JournalThread`` does.
  package init(
    path: String,
    settings: JournalPlan.Settings = .init(),
    vfs: String? = nil,
    clock: @escaping @Sendable () -> JournalClock = SystemClock.read,
    onResult: @escaping @Sendable () -> Void
  ) throws(JournalRefusal) {
    thread = try JournalThread(
      path: path,
      settings: settings,
      vfs: vfs,
      clock: clock,
      decode: { Bytes(bytes: $0) },
      onResult: onResult
    )
    plan = thread.plan
    self.clock = clock
  }

  // MARK: - Changes

  /// The number of a key, assigned at its first mention.
  package func number(of name: String) -> JournalKey { plan.number(of: name) }

  /// Why a change of `key` must be refused now; `nil` when it may be accepted.
  ///
  /// Not `nil` only while nothing can be written and a crash would bring back an older value.
  package func refusal(of key: JournalKey, at now: Moment) -> JournalFault? {
    plan.refusal(of: key, at: now)
  }

  /// Accepts the newest value of a key; ``keptValue`` returns it when it is written.
  ///
  /// `replaced`: the sequence number of the value before, if it ends with this one.
  ///
  /// - Returns: The value's sequence number, also while there is a ``fault``.
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

  /// Records that one value has ended; others of its key are unaffected.
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

  // MARK: - Time

  /// When ``advance(to:)`` has something to do next; `nil` when only the writer has.
  package var nextDeadline: Moment? {
    guard let replay = plan.replayDeadline else { return plan.nextDeadline }
    return min(replay, plan.nextDeadline ?? replay)
  }

  /// Handles the writer's results and submits due work.
  ///
  /// - Returns: Whether the writer had ended something.
  @discardableResult
  package func advance(to now: Moment) -> Bool {
    let results = thread.dequeueResults()
    for result in results { plan.completed(result, at: now) }
    if let due = plan.replayDeadline, due <= now { plan.decideReplay(clock()) }
    if let work = plan.nextWork(at: now, value: keptValue) { thread.submit(work) }
    return !results.isEmpty
  }

  /// Returns the events since the last call, in order.
  package func dequeueEvents() -> [JournalEvent] { plan.dequeueEvents() }

  /// Writes everything that waits as soon as the writer is free; called at shutdown.
  package func flush(at now: Moment) {
    plan.flush(at: now)
  }

  /// Ends the writer after the work it has; `onResult` is called once more, then ``isClosed``.
  package func beginClosing() {
    thread.beginClosing()
  }

  // MARK: - Queries

  /// Why nothing can be written at the moment; `nil` while the disk works.
  package var fault: JournalFault? { plan.fault }

  /// Whether there is a ``fault``; checked with every change.
  package var isBroken: Bool { plan.fault != nil }

  /// Whether a crash now would send an older value of the key than `sequence`.
  package func holdsOlder(_ key: JournalKey, than sequence: UInt64, at now: Moment) -> Bool {
    plan.holdsOlder(key, than: sequence, at: now)
  }

  /// The moment from which a restart sends nothing of the key's row; `nil` when unknown.
  package func rowExpiry(of key: JournalKey) -> Moment? { plan.rowExpiry(of: key) }

  /// Whether the disk has the key's newest value for certain.
  package func keeps(_ key: JournalKey) -> Bool { plan.keeps(key) }

  /// Whether nothing is being written or waits to be.
  package var isIdle: Bool { plan.isIdle }

  /// Whether nothing can be written and no attempt is in progress.
  package var isStuck: Bool { plan.isStuck }

  /// The file is closed.
  package var isClosed: Bool { thread.isClosed }
}
