// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
@testable import Gateway
import Glibc
import JSON
import LastOut
import Operations
import Testing

/// One client of the control socket, at the other end of a pair of sockets.
@Suite struct ControlConnectionTests {
  private final class Pair {
    let loop: EventLoop
    let connection: ControlConnection
    let budget = TurnBudget()
    private let client: Int32
    private var wantsTurn = false
    private(set) var isEnded = false

    init() throws {
      loop = try EventLoop()
      var ends: [Int32] = [0, 0]
      let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
      try #require(unsafe socketpair(AF_UNIX, type, 0, &ends) == 0)
      client = ends[1]
      connection = ControlConnection(
        number: 1,
        descriptor: ends[0],
        lineLimit: 1000,
        budget: budget
      )
      connection.onTurnWanted = { [unowned self] _ in wantsTurn = true }
      connection.onUnsent = { $0.flush() }
      connection.onEnd = { [unowned self] _ in isEnded = true }
      try connection.start(on: loop)
    }

    deinit {
      connection.onEnd = nil
      connection.end()
      close(client)
    }

    func send(_ text: String) {
      let bytes = Array(text.utf8)
      #expect(unsafe Glibc.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// Runs the loop until `condition` holds after a batch; at least one.
    func run(until condition: @escaping () -> Bool) {
      loop.afterBatch = { [unowned self] in
        turn()
        if condition() { loop.stop() }
      }
      loop.run()
      loop.afterBatch = nil
    }

    /// Gives the client its turn, if it wants one; returns whether it did.
    @discardableResult
    func turn() -> Bool {
      budget.renew()
      guard wantsTurn else { return false }
      wantsTurn = false
      connection.takeTurn()
      return true
    }

    func read() -> String {
      var bytes = [UInt8](repeating: 0, count: 1 << 20)
      let count = unsafe recv(client, &bytes, bytes.count, 0)
      return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
  }

  @Test func `a line has its time, and is then refused with the connection`() throws {
    let pair = try Pair()
    pair.send("{\"key\":")
    pair.run { pair.connection.unfinishedSince != nil }
    let begun = try #require(pair.connection.unfinishedSince)

    pair.connection.endIfLate(at: begun.advanced(by: .milliseconds(19_999)))
    #expect(!pair.isEnded)
    pair.connection.endIfLate(at: begun.advanced(by: .seconds(20)))

    #expect(pair.isEnded)
    #expect(pair.read().contains(#""code":"incomplete_line""#))
  }

  @Test func `a line that ends in time is not late, and the next one has its own time`() throws {
    let pair = try Pair()
    var lines = 0
    pair.connection.onLine = { _, _ in lines += 1 }
    pair.send("{")
    pair.run { pair.connection.unfinishedSince != nil }
    let begun = try #require(pair.connection.unfinishedSince)
    pair.send("}\n")
    pair.run { lines == 1 }
    #expect(pair.connection.unfinishedSince == nil)
    pair.send("{}\n{")
    pair.run { lines == 2 }
    #expect(try #require(pair.connection.unfinishedSince) > begun)
    #expect(!pair.isEnded)
  }

  @Test func `a watcher that does not read is told how much it missed`() throws {
    let pair = try Pair()
    pair.connection.watches = [.init(pattern: .init("*"), id: nil)]
    var sent = 0
    let line = Array(String(repeating: "x", count: 499).utf8)
    while pair.connection.eventBytes < 1 << 20 {
      pair.connection.sendLine(isEvent: true) { $0 += line }
      sent += 1
    }
    let now = EventLoop.now()
    #expect(pair.connection.debt >= 1 << 20)
    #expect(pair.connection.stalledEvents(at: now) == 0)
    let later = now.advanced(by: .seconds(1))
    #expect(pair.connection.stalledEvents(at: later) > 2000)

    let missed = pair.connection.endAsTooSlow()
    #expect(!pair.isEnded)
    #expect(pair.connection.debt == 0)
    var text = ""
    while !pair.isEnded {
      text += pair.read()
      pair.run { true }
    }
    text += pair.read()

    let lines = text.split(separator: "\n")
    #expect(lines.count == sent - missed + 1)
    #expect(lines.dropLast().allSatisfy { $0.utf8.count == 499 })
    #expect(lines.last?.contains("\(missed) events were dropped") == true)
  }

  /// A request about many keys, each of whose rows is as long as a part may be.
  private func startWalk(_ pair: Pair, rows count: Int) throws -> () -> Int {
    var written = 0
    let row = JSONValue.string(String(repeating: "r", count: 997))
    pair.connection.onWalk = { walk, limit, output in
      if !walk.hasBegun {
        walk.hasBegun = true
        walk.rows.begin(to: &output)
      }
      var work = 0
      while written < count, work < limit {
        walk.rows.append(row, to: &output)
        written += 1
        work += 100
      }
      if written == count {
        walk.end()
        walk.rows.end(to: &output)
      }
      return work
    }
    var lines = 0
    pair.connection.onLine = { _, connection in
      lines += 1
      if lines == 1, let walk = KeyWalk(ControlRequest(.get, key: "*")) {
        return connection.begin(walk)
      }
      connection.sendLine { $0.append(contentsOf: "later".utf8) }
    }
    pair.send("{}\n{}\n")
    pair.run { written > 0 }
    return { written }
  }

  @Test func `a turn writes as many rows as its budget allows, and the next turn goes on`() throws {
    let pair = try Pair()
    let written = try startWalk(pair, rows: 1000)
    // The client has sent in one turn, and gone on in the next.
    #expect(written() * 100 <= 2 * (TurnBudget.work + TurnBudget.slice))

    var text = pair.read()
    while !text.hasSuffix("later\n") {
      let before = written()
      pair.turn()
      #expect((written() - before) * 100 <= TurnBudget.work + TurnBudget.slice)
      text += pair.read()
      pair.run { true }
    }
    #expect(written() == 1000)
    #expect(text.split(separator: "\n").count == 2)
    #expect(text.utf8.count == 1000 * 1000 - 1 + #"{"get":[],"id":null}"#.utf8.count + 1 + 6)
  }

  @Test func `while others wait a client writes no more rows than its share`() throws {
    let pair = try Pair()
    let written = try startWalk(pair, rows: 1000)
    _ = pair.read()
    pair.budget.waiting = 511
    let before = written()
    pair.turn()
    #expect((written() - before) * 100 <= TurnBudget.slice + 100)
  }

  @Test func `rows and the lines behind them wait for a client that does not read`() throws {
    let pair = try Pair()
    let written = try startWalk(pair, rows: 10_000)
    while pair.turn() {}
    let stopped = written()
    #expect(stopped < 1000)
    #expect(pair.connection.debt <= 256 * 1024)

    // Events that come in the middle of the reply follow it.
    pair.connection.watches = [.init(pattern: .init("*"), id: nil)]
    pair.connection.sendWatched(Array("{}".utf8), watch: 7)
    #expect(pair.connection.debt > 0)
    var text = ""
    while !text.hasSuffix("later\n") {
      pair.run { true }
      text += pair.read()
    }
    let lines = text.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[0].hasPrefix(#"{"get":["rrr"#) && lines[0].hasSuffix(#""],"id":null}"#))
    #expect(lines[1] == #"{"watch":7,"event":{}}"#)
  }

  @Test func `a client has 20 seconds to read something of its replies`() throws {
    let pair = try Pair()
    _ = try startWalk(pair, rows: 10_000)
    while pair.turn() {}
    let since = try #require(pair.connection.stalledSince)
    #expect(!pair.connection.isLateReader(at: since.advanced(by: .milliseconds(19_999))))
    #expect(pair.connection.isLateReader(at: since.advanced(by: .seconds(20))))
    #expect(pair.connection.deadline == since.advanced(by: .seconds(20)))

    #expect(pair.connection.endAsTooSlow() == 0)
    var text = ""
    while !pair.isEnded {
      text += pair.read()
      pair.run { true }
    }
    text += pair.read()
    let lines = text.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.last?.contains("replies were dropped") == true)
  }

  @Test func `a client that only waits for events may be suspended for long`() throws {
    let pair = try Pair()
    pair.connection.watches = [.init(pattern: .init("*"), id: nil)]
    let event = [UInt8](repeating: UInt8(ascii: "x"), count: 1000)
    while pair.connection.stalledSince == nil {
      pair.connection.sendWatched(event, watch: nil)
      pair.connection.flush()
    }
    let since = try #require(pair.connection.stalledSince)
    #expect(!pair.connection.isLateReader(at: since.advanced(by: .seconds(3600))))
    #expect(pair.connection.deadline == nil)
  }
}
