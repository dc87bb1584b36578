// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import HTTP
import LastOut
import Operations
import Testing

/// A server whose clients have an hour for everything, and these clients.
final class HTTPRoom {
  final class Service: HTTPService {
    var refusals: [String] = []
    /// Receives the bodies of requests for `/parts` in parts.
    var onPart: ((HTTPExchange) -> Void)?
    func begin(_ exchange: HTTPExchange) {
      guard exchange.request.target.path == ["parts"] else { return }
      exchange.onBody = { [unowned exchange, unowned self] _ in onPart?(exchange) }
    }
    /// Answers with as many bytes as the query says.
    func complete(_ exchange: HTTPExchange) {
      let size = exchange.request.target.query.first.flatMap { Int($0.value) }
      let body = size.map { [UInt8](repeating: 0x78, count: $0) } ?? Array("good".utf8)
      exchange.respond(HTTPResponse(type: "text/plain", body))
    }
    func connectionRefused(reason: String, at now: Moment) { refusals.append(reason) }
  }

  struct Failure: Error { let call: String }

  let service = Service()
  let loop: EventLoop
  let server: HTTPServer
  private let port: UInt16

  init(clients: Int, limiting change: (inout HTTPServer.Limits) -> Void = { _ in }) throws {
    loop = try EventLoop()
    var limits = HTTPServer.Limits()
    limits.clients = clients
    limits.headTime = .seconds(3600)
    limits.bodyTime = .seconds(3600)
    limits.idleSeconds = 3600
    change(&limits)
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
    let first = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    // libmosquitto in this process needs the numbers that `select` can watch.
    let number = fcntl(first, F_DUPFD_CLOEXEC, 1024)
    let client = number < 0 ? first : number
    if number >= 0 { close(first) }
    // A client that does not read stops the server soon.
    var room: Int32 = 4096
    unsafe setsockopt(client, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
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

  /// Whether a new client gets a response of status 200 to its request.
  func serves(_ request: String, from address: String) throws -> Bool {
    let client = try connect(from: address, sending: request)
    defer { close(client) }
    return run { Self.canRead(client) } && Self.read(client).hasPrefix("HTTP/1.1 200 ")
  }

  /// Runs the loop until `condition` holds; `false` if it does not within a minute.
  func run(until condition: @escaping () -> Bool) -> Bool {
    let deadline = EventLoop.now().advanced(by: .seconds(60))
    // Makes a batch now and then, in which to look whether it is so.
    var timer: LoopTimer?
    timer = try? loop.makeTimer {
      let now = EventLoop.now()
      if now >= deadline { self.loop.stop() }
      timer?.arm(at: now.advanced(by: .milliseconds(10)))
    }
    timer?.arm(at: EventLoop.now())
    loop.afterBatch = {
      self.server.answerResumed()
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
