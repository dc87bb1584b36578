// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Operations

@Suite struct InterruptCoalescingTests {
  /// Runs a loop in which each turn sleeps, then works; returns the turns at which it rested.
  private func rests(
    _ turns: [(asleep: Int, awake: Int)],
    timerIn microseconds: Int? = nil,
    hurriedAt hurried: Range<Int> = 0..<0
  ) -> [Int] {
    var coalescing = InterruptCoalescing()
    var (now, slept) = (Moment(nanoseconds: 1_000_000), Duration.zero)
    coalescing.looks(at: now)
    var rested: [Int] = []
    for (number, turn) in turns.enumerated() {
      slept += .microseconds(turn.asleep)
      now = now.advanced(by: .microseconds(turn.asleep + turn.awake))
      let next = microseconds.map { now.advanced(by: .microseconds($0)) }
      let isHurried = hurried.contains(number)
      if coalescing.rests(at: now, slept: slept, before: next, isHurried: isHurried) {
        rested.append(number)
        now = now.advanced(by: .microseconds(110))
      }
      coalescing.looks(at: now)
    }
    return rested
  }

  /// A turn for each message, and hardly any sleep.
  private static let flood = Array(repeating: (asleep: 3, awake: 10), count: 20)

  @Test func `it rests after many short turns with hardly any sleep`() {
    #expect(rests(Self.flood) == [15, 16, 17, 18, 19])
  }

  @Test func `it does not rest while it sleeps longer than it works`() {
    #expect(rests(Array(repeating: (asleep: 10, awake: 10), count: 100)).isEmpty)
  }

  @Test func `it stops with the first long sleep`() {
    let turns = Self.flood + [(asleep: 1000, awake: 10)] + Self.flood.prefix(15)
    #expect(rests(turns) == [15, 16, 17, 18, 19])
  }

  @Test func `it stops after some turns with more sleep than work`() {
    let quieter = Array(repeating: (asleep: 20, awake: 10), count: 48)
    #expect(rests(Self.flood.prefix(16) + quieter) == Array(15..<31))
  }

  @Test func `it does not rest while something waits for the next event`() {
    #expect(rests(Self.flood, hurriedAt: 0..<18) == [18, 19])
  }

  @Test func `it does not rest while each turn has much to do`() {
    #expect(rests(Array(repeating: (asleep: 0, awake: 100), count: 50)).isEmpty)
    #expect(!rests(Array(repeating: (asleep: 0, awake: 99), count: 50)).isEmpty)
  }

  @Test(arguments: [(0, true), (100, true), (120, true), (121, false), (1000, false)])
  func `it does not rest past a timer`(microseconds: Int, isDue: Bool) {
    #expect(rests(Self.flood, timerIn: microseconds).isEmpty == isDue)
  }
}
