// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import LastOut
import Testing
import Values

@Suite struct ReportHistoryTests {
  private let power = KeyIndex(3)
  private let level = KeyIndex(0)

  private func moment(_ seconds: Double) -> Moment {
    Moment(nanoseconds: UInt64((seconds * 10).rounded()) * 100_000_000)
  }

  private func seconds(_ history: ReportHistory, _ key: KeyIndex) -> [Double] {
    history.points(of: key).map { Double($0.at.nanoseconds) / 1e9 }
  }

  private func values(_ history: ReportHistory, _ key: KeyIndex) -> [Value] {
    history.points(of: key).map(\.value)
  }

  @Test func `only changes are points`() {
    var history = ReportHistory()
    for (at, value) in [(0.0, 21.1), (10, 21.1), (20, 22.5), (30, 22.5), (40, 21.1)] {
      history.record(.number(value), of: level, at: moment(at))
    }

    #expect(values(history, level) == [.number(21.1), .number(22.5), .number(21.1)])
    #expect(seconds(history, level) == [0, 20, 40])
    #expect(history.points(of: power).isEmpty)
  }

  @Test func `each change of a switch is a point`() {
    var history = ReportHistory()
    for second in 0..<4 {
      history.record(.boolean(second % 2 == 0), of: power, at: moment(Double(second) / 10))
    }

    let states = values(history, power)
    #expect(states == [true, false, true, false].map { .boolean($0) })
    #expect(seconds(history, power) == [0, 0.1, 0.2, 0.3])
  }

  @Test func `the newest point follows a number that changes quickly`() {
    var history = ReportHistory()
    for tenth in 0...120 {
      history.record(.number(Double(tenth)), of: level, at: moment(Double(tenth) / 10))
    }

    // Nearly five seconds apart, and the newest.
    #expect(seconds(history, level) == [0, 4.9, 9.8, 12])
    #expect(values(history, level).last == .number(120))
  }

  @Test(arguments: [1.0, 7, 60, 1000])
  func `a number that changes forever spans a day at most, with the newest at its end`(
    pace: Double
  ) {
    var history = ReportHistory()
    var now = 0.0
    var least = Int.max
    while now < 3 * 86_400 {
      now += pace
      history.record(.number(now), of: level, at: moment(now))
      if now > 86_400 { least = min(least, history.points(of: level).count) }
    }

    let seconds = seconds(history, level)
    #expect(seconds.count <= ReportHistory.depth)
    #expect(least >= 40)
    #expect(seconds.last == now)
    #expect(zip(seconds, seconds.dropFirst()).allSatisfy { $0 < $1 })
    #expect(now - (seconds.first ?? 0) > 15 * 3600)
    #expect(now - (seconds.first ?? 0) < 30 * 3600)
  }

  @Test func `a switch keeps its last changes`() {
    var history = ReportHistory()
    for second in 0..<1000 {
      history.record(.boolean(second % 2 == 0), of: power, at: moment(Double(second)))
    }

    let seconds = seconds(history, power)
    #expect((72...96).contains(seconds.count))
    #expect(seconds == (1000 - seconds.count..<1000).map(Double.init))
  }

  @Test func `words and colors have no history, and later keys none where there is no room`() {
    var history = ReportHistory(limit: 2)
    history.record(.text("heat"), of: KeyIndex(9), at: moment(0))
    #expect(history.count == 0)
    for key in 0..<3 { history.record(.number(1), of: KeyIndex(Int32(key)), at: moment(1)) }

    #expect(history.count == 2)
    #expect(history.points(of: KeyIndex(1)).count == 1)
    #expect(history.points(of: KeyIndex(2)).isEmpty)
  }

  @Test func `a property of another type begins again`() {
    var history = ReportHistory()
    history.record(.number(40), of: level, at: moment(1))
    history.record(.boolean(true), of: level, at: moment(2))

    #expect(values(history, level) == [.boolean(true)])
  }
}
