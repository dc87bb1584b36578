// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@testable import Durability

/// Accepting a value that replaces the one before is accepting it and then ending that one.
@Suite struct JournalPlanReplacingTests {
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `replacing equals accepting and ending`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (short, long) = (JournalPlan(contents: .init()), JournalPlan(contents: .init()))
    let keys = ["a", "b", "c"].map { short.number(of: $0) }
    #expect(["a", "b", "c"].map { long.number(of: $0) } == keys)
    var replacements = 0
    for step in 0..<300 {
      let now = ms(step * 20)
      let key = keys[Int.random(in: 0..<3, using: &random)]
      let newest = short[key].newest?.sequence
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        // A key whose newest value is in flight, or of which only an older one waits, has none.
        let expiresAt = now.advanced(by: .seconds(60))
        _ = short.accept(
          key,
          replacing: newest,
          at: now,
          expiresAt: expiresAt,
          isUrgent: false
        )
        _ = long.accept(key, at: now, expiresAt: expiresAt, isUrgent: false)
        if let newest {
          replacements += 1
          long.ended(key, newest, at: now, promptly: true)
        }
      case 5:
        let expiresAt = now.advanced(by: .seconds(60))
        _ = short.accept(key, at: now, expiresAt: expiresAt, isUrgent: false)
        _ = long.accept(key, at: now, expiresAt: expiresAt, isUrgent: false)
      case 6:
        guard let newest else { break }
        short.sending(key, sequence: newest)
        long.sending(key, sequence: newest)
      case 7:
        guard let sent = short[key].inFlight?.sequence else { break }
        let isDue = short.ended(key, sent, at: now, promptly: false)
        #expect(long.ended(key, sent, at: now, promptly: false) == isDue)
      default:
        let value = { (_: JournalKey, sequence: UInt64) -> any JournalValue in Number(sequence) }
        let work = "\(String(describing: short.nextWork(at: now, value: value)))"
        #expect("\(String(describing: long.nextWork(at: now, value: value)))" == work)
        guard short.running != nil else { break }
        short.completed(.done, at: now)
        long.completed(.done, at: now)
      }
      let slots = short.keys.all.map { "\(short[$0])" }
      #expect(slots == long.keys.all.map { "\(long[$0])" })
      #expect(short.keys.hasDirty == long.keys.hasDirty)
      #expect(short.nextDeadline == long.nextDeadline)
      #expect(short.dequeueEvents() == long.dequeueEvents())
    }
    #expect(replacements > 30)
  }

  private struct Number: JournalValue, CustomStringConvertible {
    let number: UInt64

    init(_ number: UInt64) { self.number = number }

    var bytes: [UInt8] { Array(description.utf8) }
    var description: String { String(number) }
  }
}
