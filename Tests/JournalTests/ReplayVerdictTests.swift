// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Testing

struct ReplayVerdictTests {
  private static let day: Int64 = 86_400_000
  private static let wall: Int64 = 1_800_000_000_000

  private func judge(sameBoot: Bool, boot: Int64, wall: Int64) -> ReplayVerdict {
    ReplayVerdict(
      of: JournalStamps(
        boot: BootIdentifier(high: 1, low: 1),
        bootMilliseconds: 5_000,
        wallMilliseconds: Self.wall
      ),
      ttl: .seconds(60),
      now: JournalStamps(
        boot: BootIdentifier(high: sameBoot ? 1 : 2, low: 1),
        bootMilliseconds: boot,
        wallMilliseconds: wall
      )
    )
  }

  @Test(
    arguments: [
      (15_000, wall + 10_000, ReplayVerdict.send(remaining: .seconds(50))),
      (15_000, wall + 365 * day, .send(remaining: .seconds(50))),  // the clock jumped ahead
      (15_000, wall - 365 * day, .send(remaining: .seconds(50))),  // and back
      (15_000, 0, .send(remaining: .seconds(50))),
      (65_000, wall, .expired),
      (4_000, wall, .expired),  // before it was written: not to be trusted
    ] as [(Int64, Int64, ReplayVerdict)]
  )
  func `inside a boot only the boot clock counts`(
    boot: Int64,
    wall: Int64,
    verdict: ReplayVerdict
  ) {
    #expect(judge(sameBoot: true, boot: boot, wall: wall) == verdict)
  }

  @Test(
    arguments: [
      (wall + 10_000, ReplayVerdict.send(remaining: .seconds(50))),
      (wall + 60_000, .expired),
      (wall - 1_000, .send(remaining: .seconds(60))),
      (wall - 10_000, .unknown),  // behind the value: not set yet
      (0, .unknown),
      (Int64.min, .unknown),
      (Int64.max, .expired),
    ] as [(Int64, ReplayVerdict)]
  )
  func `across boots the time of day counts if it is plausible`(
    wall: Int64,
    verdict: ReplayVerdict
  ) {
    #expect(judge(sameBoot: false, boot: 1_000, wall: wall) == verdict)
  }

  @Test func `a value accepted before the clock was set is dropped in another boot`() {
    let verdict = ReplayVerdict(
      of: JournalStamps(
        boot: BootIdentifier(high: 1, low: 1),
        bootMilliseconds: 5_000,
        wallMilliseconds: 9_000
      ),
      ttl: .seconds(60),
      now: JournalStamps(
        boot: BootIdentifier(high: 2, low: 1),
        bootMilliseconds: 1_000,
        wallMilliseconds: Self.wall
      )
    )
    #expect(verdict == .expired)
  }
}
