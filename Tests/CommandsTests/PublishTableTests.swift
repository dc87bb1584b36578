// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Commands

@Suite struct PublishTableTests {
  @Test(arguments: [0, (1 << 28) - 1, .max - 1] as [UInt32])
  func `a token names its publish in every generation`(first: UInt32) {
    var table = PublishTable(firstGeneration: first)
    var landed: [UInt64] = []
    for number in 0..<4 as Range<Int32> {
      let token = table.insert([KeyIndex(number)])
      for old in landed { #expect(table.remove(old).isEmpty) }
      #expect(table.remove(token) == [KeyIndex(number)])
      #expect(table.remove(token).isEmpty)
      landed.append(token)
    }
  }
}
