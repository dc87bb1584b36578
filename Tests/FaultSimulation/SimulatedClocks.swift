// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut

/// The clocks that outlive a process.
struct SimulatedClocks: Sendable {
  private var boot: UInt64 = 1
  private var startedAt = Moment.zero
  /// When the time of day is right; before that it is far in the past.
  private var setAt = Moment.zero
  /// Since the simulation began, and since the boot.
  private var slept = Duration.zero
  private var sleptSinceBoot = Duration.zero

  mutating func sleep(for duration: Duration) {
    slept += duration
    sleptSinceBoot += duration
  }

  mutating func reboot(at now: Moment, clockSet: Moment) {
    boot += 1
    startedAt = now
    sleptSinceBoot = .zero
    setAt = clockSet
  }

  func read(at now: Moment) -> JournalClock {
    let right: Int64 = now < setAt ? 0 : 1_800_000_000_000
    return JournalClock(
      moment: now,
      stamps: JournalStamps(
        boot: BootIdentifier(high: 7, low: boot),
        bootMilliseconds: Self.milliseconds(startedAt.duration(to: now) + sleptSinceBoot),
        wallMilliseconds: right + Self.milliseconds(Moment.zero.duration(to: now) + slept)
      )
    )
  }

  private static func milliseconds(_ duration: Duration) -> Int64 {
    duration.wholeNanoseconds / 1_000_000
  }
}
