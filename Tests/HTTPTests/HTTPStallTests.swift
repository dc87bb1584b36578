// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import HTTP
import Testing

/// Clients that neither complete their requests nor read their responses.
@Suite struct HTTPStallTests {
  private static let good = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
  private static let large = "GET /?size=2000000 HTTP/1.1\r\nHost: x\r\n\r\n"
  private static let pipelined = String(
    repeating: "GET /?size=12000 HTTP/1.1\r\nHost: x\r\n\r\n",
    count: 100
  )
  private static let body = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n1"
  private static let chunk =
    "POST /parts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n"

  @Test(arguments: [large, pipelined, body, chunk], ["127.0.0.1", "127.0.0.2"])
  func `clients that stall keep nobody out`(text: String, address: String) throws {
    let room = try HTTPRoom(clients: 8)
    var crowd: [Int32] = []
    for _ in 0..<10 {
      for _ in 0..<10 { crowd.append(try room.connect(from: "127.0.0.1", sending: text)) }
      #expect(try room.serves(Self.good, from: address))
    }
    #expect(room.server.connectionCount <= 8)
    #expect(room.service.refusals.isEmpty)
    for client in crowd { close(client) }
    #expect(room.run { room.server.connectionCount == 0 })
  }

  @Test(arguments: [large, pipelined])
  func `a client that reads nothing of its response is closed`(text: String) throws {
    let room = try HTTPRoom(clients: 8) { $0.responseTime = .milliseconds(100) }
    let client = try room.connect(from: "127.0.0.1", sending: text)
    #expect(room.run { HTTPRoom.canRead(client) })

    #expect(room.run { room.server.connectionCount == 0 })
    #expect(room.server.answers[408] == nil)
    close(client)
  }

  @Test func `a client that reads its response slowly gets all of it`() throws {
    let room = try HTTPRoom(clients: 8)
    let client = try room.connect(from: "127.0.0.1", sending: Self.large)
    var answer = ""

    // A little each time that the loop comes round.
    #expect(
      room.run {
        answer += HTTPRoom.read(client)
        return answer.utf8.count > 2_000_000 && !HTTPRoom.canRead(client)
      }
    )

    let parts = answer.split(separator: "\r\n\r\n")
    #expect(parts.first?.contains("\r\nContent-Length: 2000000") == true)
    #expect(parts.last?.utf8.count == 2_000_000)
    close(client)
  }

  @Test func `a body in parts ends when no complete part comes`() throws {
    let room = try HTTPRoom(clients: 8) { $0.bodyTime = .seconds(2) }
    let slow = try room.connect(from: "127.0.0.1", sending: Self.chunk)
    let steady = try room.connect(from: "127.0.0.2", sending: Self.chunk)
    room.service.onPart = { if $0.peer == "127.0.0.2" { $0.renewBodyTime() } }
    let more = Array("1\r\n \r\n".utf8)

    // Both send all the time; the parts of one of them are complete.
    #expect(
      room.run {
        for client in [slow, steady] { unsafe send(client, more, more.count, Int32(MSG_NOSIGNAL)) }
        return HTTPRoom.canRead(slow)
      }
    )

    #expect(HTTPRoom.read(slow).hasPrefix("HTTP/1.1 408 "))
    #expect(!HTTPRoom.canRead(steady))
    #expect(room.run { room.server.connectionCount == 1 })
    for client in [slow, steady] { close(client) }
  }
}
