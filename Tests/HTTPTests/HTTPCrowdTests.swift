// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import HTTP
import LastOut
import Operations
import Testing

/// More clients than there is room for, on one loop with the server.
@Suite struct HTTPCrowdTests {
  private static let half = "GET /half HTTP/1.1\r\nHost: x\r\nX-Unfini"

  @Test(arguments: ["", "GET /ha", half], [true, false])
  func `a client that goes away in its head frees its place`(text: String, isSeen: Bool) throws {
    let room = try Room(clients: 4)
    let client = try room.connect(from: "127.0.0.1", sending: text)
    // Otherwise the end comes in one piece with what was sent.
    if isSeen { #expect(room.run { room.server.connectionCount == 1 }) }
    close(client)
    let other = try room.connect(from: "127.0.0.1", sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(room.run { Room.canRead(other) })

    #expect(room.run { room.server.connectionCount == 1 })
    close(other)
  }

  @Test func `a client that sends its request and nothing more is answered`() throws {
    let room = try Room(clients: 4)
    let client = try room.connect(from: "127.0.0.1", sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    shutdown(client, Int32(SHUT_WR))

    #expect(room.run { Room.canRead(client) })
    #expect(Room.read(client).hasPrefix("HTTP/1.1 200 "))
    #expect(room.run { room.server.connectionCount == 0 })
    close(client)
  }

  @Test(arguments: ["127.0.0.1", "127.0.0.2"], ["", "GET /ha", half])
  func `unfinished heads keep nobody out`(address: String, text: String) throws {
    let room = try Room(clients: 8)
    var crowd: [Int32] = []
    for round in 0..<25 {
      for _ in 0..<10 { crowd.append(try room.connect(from: "127.0.0.1", sending: text)) }
      let good = try room.connect(
        from: address,
        sending: "GET /\(round) HTTP/1.1\r\nHost: x\r\n\r\n"
      )
      #expect(room.run { Room.canRead(good) })
      #expect(Room.read(good).hasPrefix("HTTP/1.1 200 "))
      close(good)
    }
    #expect(room.server.connectionCount <= 8)
    #expect(room.service.refusals.isEmpty)
    for client in crowd { close(client) }
    #expect(room.run { room.server.connectionCount == 0 })
  }

  @Test func `the address with the most unfinished heads loses its oldest`() throws {
    let room = try Room(clients: 8)
    let patient = try room.connect(from: "127.0.0.2", sending: Self.half)
    let crowd = try (0..<40).map { _ in try room.connect(from: "127.0.0.1", sending: Self.half) }
    let last = try room.connect(from: "127.0.0.3", sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(room.run { Room.canRead(last) })

    #expect(Room.read(last).hasPrefix("HTTP/1.1 200 "))
    #expect(!Room.canRead(patient))
    #expect(Room.read(crowd[0]).hasPrefix("HTTP/1.1 503 "))
    #expect(!Room.canRead(crowd[39]))
    for client in crowd + [patient, last] { close(client) }
  }

  @Test func `one address does not take the places of idle clients`() throws {
    let room = try Room(clients: 8)
    let idle = try (0..<4).map { _ in
      let client = try room.connect(
        from: "127.0.0.2",
        sending: "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      )
      #expect(room.run { Room.canRead(client) })
      #expect(Room.read(client).hasPrefix("HTTP/1.1 200 "))
      return client
    }
    let crowd = try (0..<40).map { _ in try room.connect(from: "127.0.0.1", sending: Self.half) }
    #expect(room.run { Room.canRead(crowd[0]) })

    for client in idle { #expect(!Room.canRead(client)) }
    for client in crowd + idle { close(client) }
  }
}

/// A server whose heads have an hour, and its clients.
private final class Room {
  final class Service: HTTPService {
    var refusals: [String] = []
    func begin(_ exchange: HTTPExchange) {}
    func complete(_ exchange: HTTPExchange) {
      exchange.respond(HTTPResponse(type: "text/plain", Array("good".utf8)))
    }
    func connectionRefused(reason: String, at now: Moment) { refusals.append(reason) }
  }

  struct Failure: Error { let call: String }

  let service = Service()
  let loop: EventLoop
  let server: HTTPServer
  private let port: UInt16

  init(clients: Int) throws {
    loop = try EventLoop()
    var limits = HTTPServer.Limits()
    limits.clients = clients
    limits.headTime = .seconds(3600)
    limits.idleSeconds = 3600
    server = try HTTPServer(loop: loop, limits: limits, service: service)
    let sockets = try HTTPListener.sockets(host: "0.0.0.0", port: 0, loopbackOnly: false)
    let socket = try #require(sockets.first)
    try server.listen(on: socket, isTrusted: false)
    let address = HTTPListener.boundAddress(of: socket)
    port = try #require(address.split(separator: ":").last.flatMap { UInt16($0) })
  }

  deinit { server.close() }

  /// Connects from an address of this machine, and sends `text`.
  func connect(from address: String, sending text: String) throws -> Int32 {
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try unsafe call(bind, client, address, port: 0)
    try unsafe call(Glibc.connect, client, "127.0.0.1", port: port)
    let bytes = Array(text.utf8)
    #expect(unsafe send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    return client
  }

  private func call(
    _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32,
    _ client: Int32,
    _ address: String,
    port: UInt16
  ) throws {
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = port.bigEndian
    name.sin_addr.s_addr = unsafe inet_addr(address)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = unsafe withUnsafePointer(to: &name) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe function(client, $0, size)
      }
    }
    guard code == 0 else { throw Failure(call: "\(address):\(port) \(errno)") }
  }

  /// Runs the loop until `condition` holds; `false` if it does not within ten seconds.
  func run(until condition: @escaping () -> Bool) -> Bool {
    let deadline = EventLoop.now().advanced(by: .seconds(10))
    // Makes a batch now and then, in which to look whether it is so.
    var timer: LoopTimer?
    timer = try? loop.makeTimer {
      let now = EventLoop.now()
      if now >= deadline { self.loop.stop() }
      timer?.arm(at: now.advanced(by: .milliseconds(10)))
    }
    timer?.arm(at: EventLoop.now())
    loop.afterBatch = {
      self.server.runResumed()
      if condition() { self.loop.stop() }
    }
    loop.run()
    loop.afterBatch = nil
    timer?.cancel()
    timer = nil
    return condition()
  }

  static func canRead(_ descriptor: Int32) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&request, 1, 0) > 0
  }

  static func read(_ descriptor: Int32) -> String {
    var answer = [UInt8](repeating: 0, count: 4096)
    let count = unsafe recv(descriptor, &answer, answer.count, Int32(MSG_DONTWAIT))
    return String(decoding: answer.prefix(max(0, count)), as: UTF8.self)
  }
}
