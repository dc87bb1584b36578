// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Decides when a loop rests before it looks for events again, so that each look finds several.
///
/// A broker on the same machine sends each message by itself, and a fast loop wakes up for each: the
/// system calls around a message then cost more than the message. Network cards have the same
/// problem and coalesce interrupts. While the last turns were short, and took more time together
/// than the sleep between them, the loop waits a tenth of a millisecond before each look. It does
/// not wait after a longer sleep, after long turns, before a timer that is due, or while something
/// waits for the next event, as commands do for room.
struct InterruptCoalescing: Hashable, Sendable {
  /// How long one rest lasts; the kernel adds about as much.
  static let rest = Duration.microseconds(60)
  /// A sleep of this length ends the resting at once.
  private static let longSleep = Duration.milliseconds(1)
  /// What the turns may take on average.
  private static let shortTurn = Duration.microseconds(100)
  /// How many turns are looked at together.
  static let turns = 16

  private var isDense = false
  private var count = 0
  private var asleep = Duration.zero
  private var awake = Duration.zero
  private var lookedAt = Moment.zero
  private var slept = Duration.zero

  /// Whether to rest before the look that comes at `now`; `total` is how long the loop has slept in
  /// its life, `next` when the first timer is due, `isHurried` whether something waits for the next
  /// event.
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

  /// The loop looks now.
  mutating func looks(at now: Moment) { lookedAt = now }

  private mutating func begin(isDense: Bool) {
    self.isDense = isDense
    (count, asleep, awake) = (0, .zero, .zero)
  }
}
