// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Devices
import LastOut
import Testing

@testable import Commands

@Suite struct StatusTableTests {
  @Test func `a target that stays the same is no change`() {
    var table = StatusTable(keys: 1)
    table.setTarget(1, of: .first)
    #expect(table.takeNewTarget(of: .first) == true)
    table.setTarget(1, of: .first)
    #expect(table.takeNewTarget(of: .first) == false)
    #expect(table.changedKeys == [.first])
  }

  @Test func `what becomes of an older command says nothing about the newest`() {
    var table = StatusTable(keys: 1)
    table.record(.accepted, of: 2, for: .first, at: .at(1))
    table.record(.superseded, of: 1, for: .first, at: .at(2))
    #expect(table.status(.first, actual: nil).phase == .accepted)
    #expect(table.status(.first, actual: nil).since == .at(1))
  }

  @Test func `a key that changes twice in a row is reported once`() {
    var table = StatusTable(keys: 2)
    for key in [KeyIndex.first, .first, .second, .first] { table.markChanged(key) }
    #expect(table.changedKeys == [.first, .second, .first])
  }
}
