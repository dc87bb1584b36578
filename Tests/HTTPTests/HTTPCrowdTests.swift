// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import HTTP
import Testing

/// More clients than there is room for, on one loop with the server.
@Suite struct HTTPCrowdTests {
  private static let half = "GET /half HTTP/1.1\r\nHost: x\r\nX-Unfini"

  @Test(arguments: ["", "GET /ha", half], [true, false])
  func `a client that goes away in its head frees its place`(text: String, isSeen: Bool) throws {
    let room = try HTTPRoom(clients: 4)
    let client = try room.connect(from: "127.0.0.1", sending: text)
    // Otherwise the end comes in one piece with what was sent.
    if isSeen { #expect(room.run { room.server.connectionCount == 1 }) }
    close(client)
    let other = try room.connect(from: "127.0.0.1", sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(room.run { HTTPRoom.canRead(other) })

    #expect(room.run { room.server.connectionCount == 1 })
    close(other)
  }

  @Test func `a client that sends its request and nothing more is answered`() throws {
    let room = try HTTPRoom(clients: 4)
    let client = try room.connect(from: "127.0.0.1", sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    shutdown(client, Int32(SHUT_WR))

    #expect(room.run { HTTPRoom.canRead(client) })
    #expect(HTTPRoom.read(client).hasPrefix("HTTP/1.1 200 "))
    #expect(room.run { room.server.connectionCount == 0 })
    close(client)
  }

  @Test(arguments: ["127.0.0.1", "127.0.0.2"], ["", "GET /ha", half])
  func `unfinished heads keep nobody out`(address: String, text: String) throws {
    let room = try HTTPRoom(clients: 8)
    var crowd: [Int32] = []
    for round in 0..<25 {
      for _ in 0..<10 { crowd.append(try room.connect(from: "127.0.0.1", sending: text)) }
      #expect(try room.serves("GET /\(round) HTTP/1.1\r\nHost: x\r\n\r\n", from: address))
    }
    #expect(room.server.connectionCount <= 8)
    #expect(room.service.refusals.isEmpty)
    for client in crowd { close(client) }
    #expect(room.run { room.server.connectionCount == 0 })
  }

  @Test func `the address with the most unfinished heads loses its oldest`() throws {
    let room = try HTTPRoom(clients: 8)
    let patient = try room.connect(from: "127.0.0.2", sending: Self.half)
    let crowd = try (0..<40).map { _ in try room.connect(from: "127.0.0.1", sending: Self.half) }
    let last = try room.connect(from: "127.0.0.3", sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(room.run { HTTPRoom.canRead(last) })

    #expect(HTTPRoom.read(last).hasPrefix("HTTP/1.1 200 "))
    #expect(!HTTPRoom.canRead(patient))
    #expect(HTTPRoom.read(crowd[0]).hasPrefix("HTTP/1.1 503 "))
    #expect(!HTTPRoom.canRead(crowd[39]))
    for client in crowd + [patient, last] { close(client) }
  }

  @Test func `one address does not take the places of idle clients`() throws {
    let room = try HTTPRoom(clients: 8)
    let idle = try (0..<4).map { _ in
      let client = try room.connect(
        from: "127.0.0.2",
        sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      )
      #expect(room.run { HTTPRoom.canRead(client) })
      #expect(HTTPRoom.read(client).hasPrefix("HTTP/1.1 200 "))
      return client
    }
    let crowd = try (0..<40).map { _ in try room.connect(from: "127.0.0.1", sending: Self.half) }
    #expect(room.run { HTTPRoom.canRead(crowd[0]) })

    for client in idle { #expect(!HTTPRoom.canRead(client)) }
    for client in crowd + idle { close(client) }
  }
}
