// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@testable import Commands

@Suite struct KeyDeadlinesTests {
  @Test func `a deadline that is set again moves`() {
    var deadlines = KeyDeadlines(keys: 2)
    deadlines.set(.first, at: .at(10))
    deadlines.set(.second, at: .at(20))
    deadlines.set(.first, at: .at(30))
    #expect(deadlines.count == 2)
    #expect(deadlines.popFirst(at: .at(30)) == .second)
    #expect(deadlines.popFirst(at: .at(30)) == .first)
  }

  @Test func `nothing is overdue before its moment`() {
    var deadlines = KeyDeadlines(keys: 1)
    deadlines.set(.first, at: .at(10))
    #expect(deadlines.popFirst(at: .at(9)) == nil)
    #expect(deadlines.first == .at(10))
  }

  @Test(arguments: UInt64(1)...50)
  func `whatever is set, moved and removed, the earliest comes first`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var deadlines = KeyDeadlines(keys: 40)
    var expected: [Int32: Int] = [:]
    for _ in 0..<200 {
      let key = Int32.random(in: 0..<40, using: &random)
      if Bool.random(using: &random) {
        let moment = Int.random(in: 0..<1000, using: &random)
        deadlines.set(KeyIndex(key), at: .at(moment))
        expected[key] = moment
      } else {
        deadlines.remove(KeyIndex(key))
        expected[key] = nil
      }
      #expect(deadlines.first == expected.values.min().map { .at($0) })
    }
    var order: [Int] = []
    while let key = deadlines.popFirst(at: .at(1000)) { order.append(expected[key.rawValue] ?? -1) }
    #expect(order == expected.values.sorted())
  }
}
