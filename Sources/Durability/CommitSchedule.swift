// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

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
