// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import Testing

struct ReplayVerdictTests {
  private static let day: Int64 = 86_400_000
  private static let wall: Int64 = 1_800_000_000_000

  /// Judges a value with a time to live of 60 s, accepted 5 s after its boot at the wall clock's
  /// `accepted`.
  private func judge(
    sameBoot: Bool,
    boot: Int64,
    wall: Int64,
    accepted: Int64 = Self.wall,
    isSynchronised: Bool
  ) -> ReplayVerdict {
    ReplayVerdict(
      of: JournalStamps(
        boot: BootIdentifier(high: 1, low: 1),
        bootMilliseconds: 5_000,
        wallMilliseconds: accepted
      ),
      ttl: .seconds(60),
      now: JournalClock(
        moment: .zero,
        stamps: JournalStamps(
          boot: BootIdentifier(high: sameBoot ? 1 : 2, low: 1),
          bootMilliseconds: boot,
          wallMilliseconds: wall
        ),
        isSynchronised: isSynchronised
      )
    )
  }

  @Test(
    arguments: [
      (15_000, wall + 10_000, ReplayVerdict.send(remaining: .seconds(50))),
      (15_000, wall + 365 * day, .send(remaining: .seconds(50))),  // the clock jumped ahead
      (15_000, wall - 365 * day, .send(remaining: .seconds(50))),  // and back
      (15_000, 0, .send(remaining: .seconds(50))),
      (65_000, wall, .expired(.timeToLive)),
      (4_000, wall, .expired(.timeToLive)),  // before it was written: not to be trusted
    ] as [(Int64, Int64, ReplayVerdict)]
  )
  func `within a boot only the boot clock counts`(
    boot: Int64,
    wall: Int64,
    verdict: ReplayVerdict
  ) {
    #expect(judge(sameBoot: true, boot: boot, wall: wall, isSynchronised: false) == verdict)
    #expect(judge(sameBoot: true, boot: boot, wall: wall, isSynchronised: true) == verdict)
  }

  @Test(
    arguments: [
      (wall + 10_000, ReplayVerdict.send(remaining: .seconds(50))),
      (wall + 60_000, .expired(.timeToLive)),
      (wall + 500, .send(remaining: .seconds(59))),  // it is as old as this boot at least
      (wall - 1_000, .send(remaining: .seconds(59))),
      (wall - 10_000, .unknown),  // behind the value: not set yet
      (0, .unknown),
      (Int64.min, .unknown),
      (Int64.max, .expired(.timeToLive)),
    ] as [(Int64, ReplayVerdict)]
  )
  func `across boots a synchronised wall clock counts`(wall: Int64, verdict: ReplayVerdict) {
    #expect(judge(sameBoot: false, boot: 1_000, wall: wall, isSynchronised: true) == verdict)
  }

  @Test(arguments: [wall + 5_000, wall + 10 * day, wall - day, 0])
  func `across boots an unsynchronised wall clock is not used`(wall: Int64) {
    #expect(judge(sameBoot: false, boot: 1_000, wall: wall, isSynchronised: false) == .unknown)
  }

  @Test(arguments: [true, false])
  func `a value is as old as the boot that it was not accepted in`(isSynchronised: Bool) {
    let verdict = judge(
      sameBoot: false,
      boot: 60_000,
      wall: Self.wall + 5_000,
      isSynchronised: isSynchronised
    )
    #expect(verdict == .expired(.timeToLive))
  }

  @Test(arguments: [true, false])
  func `a value accepted before the clock was set is dropped in another boot`(
    isSynchronised: Bool
  ) {
    let verdict = judge(
      sameBoot: false,
      boot: 1_000,
      wall: Self.wall,
      accepted: 9_000,
      isSynchronised: isSynchronised
    )
    #expect(verdict == .expired(.clockNotSynchronised))
  }
}
