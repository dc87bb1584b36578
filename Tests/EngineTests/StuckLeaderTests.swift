// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Engine

struct StuckLeaderTests {
  private static func moment(_ milliseconds: Int) -> Moment {
    Moment(nanoseconds: UInt64(milliseconds) * 1_000_000)
  }

  @Test func `another leader is asked for when writes are without an answer for long`() {
    var leader = StuckLeader()
    let asked = [0, 1000, 2400, 2600, 3000, 10_000, 10_700].map {
      leader.unanswered(at: Self.moment($0))
    }
    #expect(asked == [false, false, false, true, false, false, true])
  }

  @Test func `an answer between two silences starts the time again`() {
    var leader = StuckLeader()
    var asked = [leader.unanswered(at: Self.moment(0))]
    leader.answered()
    asked += [3000, 5000, 5500].map { leader.unanswered(at: Self.moment($0)) }
    #expect(asked == [false, false, false, true])
  }
}
