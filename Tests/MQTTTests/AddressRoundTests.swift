// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations
import Testing

@testable import MQTT

@Suite struct AddressRoundTests {
  private var round = AddressRound()
  private let refused = ConnectionProblem(.unreachable, "refused")
  private let silent = ConnectionProblem(.silent, "silent")
  private let unfit = ConnectionProblem(.refused, "not authorized", .credentials)

  /// The next address, of three.
  private mutating func next() -> String? {
    round.begin([.tcp(host: "broker", port: 1)])
    return try? round.next { _ throws(UnresolvedName) in ["a", "b", "c"] }.address
  }

  private func target(_ address: String) -> AddressRound.Target {
    AddressRound.Target(endpoint: .tcp(host: "broker", port: 1), address: address)
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
    round.connected(to: target("b"))
    var order: [String?] = []
    repeat { order.append(next()) } while round.failed(refused) == nil
    #expect(order == ["b", "a", "c"])
  }

  @Test mutating func `a name whose addresses are not found ends the round`() {
    round.begin([.tcp(host: "broker", port: 1)])
    #expect(throws: UnresolvedName.self) {
      try round.next { _ throws(UnresolvedName) in throw UnresolvedName(reason: "not known") }
    }
    #expect(round.failed(refused) == refused)
  }

  @Test mutating func `a round of which nothing can be tried is over with the next failure`() {
    #expect(next() == "a")
    round.skipRest()
    #expect(round.failed(refused) == refused)
    round.begin([.tcp(host: "broker", port: 1)])
    round.skipRest()
    #expect(round.failed(silent) == silent)
  }

  @Test func `a closed connection counts for its address alone`() {
    var older = OlderProtocol()
    let closed = ConnectionProblem(.unreachable, "closed", .closed)
    let attempts = [
      (closed, "a", false), (closed, "b", false), (closed, "a", true), (refused, "b", false),
      (closed, "b", false),
    ]
    for (problem, address, isDue) in attempts {
      let found = older.isDue(after: problem, at: target(address))
      #expect(found == isDue)
    }
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

  @Test mutating func `an attempt that does not end is followed by the next target`() throws {
    round.begin([.tcp(host: "slow", port: 1), .unix(path: "/s")])
    #expect(round.abandon(silent) == nil)
    let target = try round.next { _ throws(UnresolvedName) in [] }
    #expect(target == AddressRound.Target(endpoint: .unix(path: "/s"), address: "/s"))
    #expect(round.failed(refused) == refused)
  }

  @Test mutating func `brokers are tried in turn, the one of the latest connection first`() throws {
    let brokers: [BrokerEndpoint] = [
      .tcp(host: "a", port: 1), .tls(host: "b", port: 2),
    ]
    var order: [String] = []
    for _ in 0..<2 {
      round.begin(brokers)
      repeat {
        let target = try round.next { host throws(UnresolvedName) in [host + "1", host + "2"] }
        order.append(target.address)
        if order.count == 4 { round.connected(to: target) }
      } while order.count != 4 && round.failed(refused) == nil
    }
    #expect(order == ["a1", "a2", "b1", "b2", "b2", "b1", "a1", "a2"])
  }

  @Test mutating func `a target that wants an older protocol is tried again next`() throws {
    _ = next()
    #expect(round.failed(refused) == nil)
    round.retryOlder(target("a"))
    let target = try round.next { _ throws(UnresolvedName) in [] }
    #expect(target.address == "a" && target.isOlder)
    #expect(next() == "b")
  }
}
