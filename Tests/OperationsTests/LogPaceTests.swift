// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import Testing

@Suite struct LogPaceTests {
  private static func moment(_ seconds: Int) -> Moment {
    Moment(nanoseconds: UInt64(seconds) * 1_000_000_000)
  }

  @Test func `a repeated event is logged at once, then at doubling intervals up to the limit`() {
    var pace = LogPace(.seconds(10)...(.seconds(60)))
    let told = (0..<300).filter { pace.record(at: Self.moment($0)) != nil }
    #expect(told == [0, 10, 30, 70, 130, 190, 250])
  }

  @Test func `a line counts the events since the previous one`() {
    var pace = LogPace(.seconds(10)...(.seconds(60)))
    let counts = [0, 1, 2, 10, 29, 30].map { pace.record(5, at: Self.moment($0)) }
    #expect(counts == [5, nil, nil, 15, nil, 10])
    #expect(pace.unlogged == 0)
  }

  @Test func `the end returns the unlogged count, and starts over`() {
    var pace = LogPace(.seconds(10)...(.seconds(60)))
    let first = (0..<15).compactMap { pace.record(at: Self.moment($0)) }
    let rest = pace.end()
    let next = [16, 17, 26].map { pace.record(at: Self.moment($0)) }
    #expect(first == [1, 10])
    #expect(rest == 4)
    #expect(next == [1, nil, 2])
  }
}
