// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What becomes of the values of an earlier process.
extension JournalPlan {
  /// How long to wait for a plausible time of day before what needs it is dropped.
  package static let replayPatience: Duration = .seconds(60)

  /// Whether ``decideReplay(_:)`` has something to decide.
  package var awaitsReplay: Bool { !undecided.isEmpty }

  /// Says of each value that an earlier process left whether it is to be sent; to be called again,
  /// about once a second, while ``awaitsReplay``.
  ///
  /// A value that a newer one has replaced meanwhile is not mentioned. What is dropped leaves the
  /// file with the next removal.
  package mutating func decideReplay(_ clock: JournalClock) {
    guard awaitsReplay else { return }
    let end = patienceEnds ?? clock.moment.advanced(by: Self.replayPatience)
    patienceEnds = end
    var rest: [JournalEntry] = []
    for entry in undecided where isNewest(entry.key, entry.sequence) {
      guard case .stored(let stamps) = entry.origin else { continue }
      switch ReplayVerdict(of: stamps, ttl: entry.ttl, now: clock.stamps) {
      case .send(let remaining): news.append(.replay(entry, remaining: remaining))
      case .unknown where clock.moment < end: rest.append(entry)
      case .unknown, .expired:
        finished(entry.key, through: entry.sequence, at: clock.moment)
        news.append(.expired(entry))
      }
    }
    undecided = rest
    if rest.isEmpty { patienceEnds = nil }
  }
}
