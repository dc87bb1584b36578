// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
@testable import Gateway
import Glibc
import LastOut
import Operations
import Testing

/// One client of the control socket, at the other end of a pair of sockets.
@Suite struct ControlConnectionTests {
  private final class Pair {
    let loop: EventLoop
    let connection: ControlConnection
    private let client: Int32
    private(set) var isEnded = false

    init() throws {
      loop = try EventLoop()
      var ends: [Int32] = [0, 0]
      let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
      try #require(unsafe socketpair(AF_UNIX, type, 0, &ends) == 0)
      client = ends[1]
      connection = ControlConnection(number: 1, descriptor: ends[0], lineLimit: 1000)
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
      loop.afterBatch = { [unowned self] in if condition() { loop.stop() } }
      loop.run()
      loop.afterBatch = nil
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
    #expect(pair.connection.debt(at: now) >= 1 << 20)
    #expect(pair.connection.stalledEvents(at: now) == 0)
    let later = now.advanced(by: .seconds(1))
    #expect(pair.connection.stalledEvents(at: later) > 2000)

    let missed = pair.connection.endAsTooSlow()
    #expect(!pair.isEnded)
    #expect(pair.connection.debt(at: later) == 0)
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
}
