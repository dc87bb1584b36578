// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import MQTT

@Suite struct AddressRoundTests {
  private var round = AddressRound()
  private let refused = ConnectionProblem(.unreachable, "refused")
  private let silent = ConnectionProblem(.silent, "silent")
  private let unfit = ConnectionProblem(.refused, "not authorized", .credentials)

  /// The next address, of three.
  private mutating func next() -> String? {
    try? round.next { () throws(UnresolvedName) in ["a", "b", "c"] }
  }

  @Test mutating func `each address is tried once, then the round is over`() {
    for address in ["a", "b"] {
      #expect(next() == address)
      #expect(round.failed(refused) == nil)
    }
    #expect(next() == "c")
    #expect(round.failed(refused) == refused)
    #expect(next() == "a")
  }

  @Test mutating func `a round begins with the address of the latest connection`() {
    _ = next()
    #expect(round.failed(refused) == nil)
    #expect(next() == "b")
    round.connected(to: "b")
    var order: [String?] = []
    repeat { order.append(next()) } while round.failed(refused) == nil
    #expect(order == ["b", "a", "c"])
  }

  @Test mutating func `a name whose addresses are not found ends the round`() {
    #expect(throws: UnresolvedName.self) {
      try round.next { () throws(UnresolvedName) in throw UnresolvedName(reason: "not known") }
    }
    #expect(round.failed(refused) == refused)
  }

  @Test mutating func `what answered says more than what did not`() {
    _ = next()
    let closed = ConnectionProblem(.unreachable, "closed", .closed)
    #expect(round.failed(closed) == nil)
    _ = next()
    #expect(round.failed(silent) == nil)
    _ = next()
    #expect(round.failed(refused) == closed)
  }

  @Test mutating func `the next round waits for the operator only if every address does`() {
    _ = next()
    #expect(round.failed(unfit) == nil)
    _ = next()
    #expect(round.failed(refused) == nil)
    _ = next()
    let problem = round.failed(refused)
    #expect(problem?.reason == unfit.reason && problem?.trouble == .credentials)
    #expect(problem?.callsForSlowRetry == false)
    for _ in 0..<2 {
      _ = next()
      #expect(round.failed(unfit) == nil)
    }
    _ = next()
    #expect(round.failed(unfit)?.callsForSlowRetry == true)
  }

  @Test mutating func `a round that is abandoned tries no address that is left`() {
    _ = next()
    #expect(round.abandon(silent) == silent)
    #expect(next() == "a")
  }
}
