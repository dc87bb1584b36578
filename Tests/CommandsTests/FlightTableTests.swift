// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Commands

@Suite struct FlightTableTests {
  @Test(arguments: [0, (1 << 28) - 1, .max - 1] as [UInt32])
  func `a token names its publish in every generation`(first: UInt32) {
    var table = FlightTable(firstGeneration: first)
    var landed: [UInt64] = []
    for number in 0..<4 as Range<Int32> {
      let token = table.depart([KeyIndex(number)])
      for old in landed { #expect(table.land(old).isEmpty) }
      #expect(table.land(token) == [KeyIndex(number)])
      #expect(table.land(token).isEmpty)
      landed.append(token)
    }
  }
}
