// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut

/// The clocks that outlive a process.
struct SimulatedClocks: Sendable {
  private var boot: UInt64 = 1
  private var startedAt = Moment.zero
  /// When the wall clock is synchronised.
  private var setAt = Moment.zero
  /// How far it is slow before that.
  private var lag = Duration.zero
  /// The time asleep, since the start and since the boot.
  private var slept = Duration.zero
  private var sleptSinceBoot = Duration.zero

  mutating func sleep(for duration: Duration) {
    slept += duration
    sleptSinceBoot += duration
  }

  /// Restarts the machine after it stopped at `end`; `isFrozen`: the wall clock continues from
  /// there, otherwise it starts in 1970.
  mutating func reboot(at now: Moment, after end: Moment, clockSet: Moment, isFrozen: Bool) {
    boot += 1
    let wall = read(at: end).stamps.wallMilliseconds
    let right = Self.epoch + Self.milliseconds(Moment.zero.duration(to: now) + slept)
    lag = .milliseconds(isFrozen ? right - wall : right)
    startedAt = now
    sleptSinceBoot = .zero
    setAt = clockSet
  }

  func read(at now: Moment) -> JournalClock {
    let isSynchronised = now >= setAt
    let right = Self.epoch + Self.milliseconds(Moment.zero.duration(to: now) + slept)
    return JournalClock(
      moment: now,
      stamps: JournalStamps(
        boot: BootIdentifier(high: 7, low: boot),
        bootMilliseconds: Self.milliseconds(startedAt.duration(to: now) + sleptSinceBoot),
        wallMilliseconds: isSynchronised ? right : right - Self.milliseconds(lag)
      ),
      isSynchronised: isSynchronised
    )
  }

  /// The wall clock at the start of the simulation.
  private static let epoch: Int64 = 1_800_000_000_000

  private static func milliseconds(_ duration: Duration) -> Int64 {
    duration.wholeNanoseconds / 1_000_000
  }
}
