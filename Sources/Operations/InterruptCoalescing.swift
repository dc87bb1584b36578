// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Decides when a loop rests before polling, so that each poll returns several events.
///
/// A broker on the same machine sends messages one by one, and a fast loop wakes up for each: the
/// system calls for a message then cost more than the message. Network cards have the same problem
/// and coalesce interrupts. While the last turns were short, and together took longer than the
/// sleep between them, the loop waits a tenth of a millisecond before each poll. It does not wait
/// after a longer sleep, after long turns, before a due timer, or while work waits for the next
/// event, such as commands for room in the window.
struct InterruptCoalescing: Hashable, Sendable {
  /// How long one rest lasts; the kernel adds about as much.
  static let rest = Duration.microseconds(60)
  /// A sleep of this length ends the resting at once.
  private static let longSleep = Duration.milliseconds(1)
  /// The maximum average length of a turn.
  private static let shortTurn = Duration.microseconds(100)
  /// The number of turns in the average.
  static let turns = 16

  private var isDense = false
  private var count = 0
  private var asleep = Duration.zero
  private var awake = Duration.zero
  private var lookedAt = Moment.zero
  private var slept = Duration.zero

  /// Whether to rest before polling at `now`; `total` is the total time that the loop has slept,
  /// `next` the deadline of the first timer, and `isHurried` whether work waits for the next event.
  mutating func rests(
    at now: Moment,
    slept total: Duration,
    before next: Moment?,
    isHurried: Bool
  ) -> Bool {
    let sleep = total - slept
    slept = total
    guard sleep < Self.longSleep else {
      begin(isDense: false)
      return false
    }
    asleep += sleep
    awake += lookedAt.duration(to: now) - sleep
    count += 1
    if count == Self.turns {
      begin(isDense: asleep < awake && awake < Self.shortTurn * Self.turns)
    }
    guard isDense, !isHurried else { return false }
    return next.map { $0 > now.advanced(by: Self.rest * 2) } ?? true
  }

  /// Records that the loop polls now.
  mutating func looks(at now: Moment) { lookedAt = now }

  private mutating func begin(isDense: Bool) {
    self.isDense = isDense
    (count, asleep, awake) = (0, .zero, .zero)
  }
}
