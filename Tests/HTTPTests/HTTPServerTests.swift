// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import HTTP
import LastOut
import Operations
import Testing

/// The server on a loop of its own, with a client on the same thread.
@Suite struct HTTPServerTests {
  /// Answers with a stream that holds its exchange, as streams do.
  private final class Service: HTTPService {
    var onRequest: ((HTTPExchange) -> Void)?
    private(set) var refusals: [String] = []

    func begin(_ exchange: HTTPExchange) {}
    func complete(_ exchange: HTTPExchange) { onRequest?(exchange) }
    func connectionRefused(reason: String, at now: Moment) { refusals.append(reason) }
  }

  private final class Stream: ResponseStream {
    let exchange: HTTPExchange
    var pieces: [ResponsePiece]

    init(_ exchange: HTTPExchange, _ pieces: [ResponsePiece]) {
      self.exchange = exchange
      self.pieces = pieces
    }

    func next(_ room: Int) -> ResponsePiece { pieces.isEmpty ? .wait : pieces.removeFirst() }
  }

  /// Sends `request`, and runs the loop until `condition` holds, or the client has an answer if
  /// there is none, or a minute has passed.
  private func talk(
    _ request: String,
    closes: Bool = false,
    service: Service,
    until condition: (() -> Bool)? = nil
  ) throws -> String {
    let loop = try EventLoop()
    let server = try HTTPServer(loop: loop, limits: .init(), service: service)
    let sockets = try HTTPListener.sockets(host: "127.0.0.1", port: 0, loopbackOnly: true)
    let socket = try #require(sockets.first)
    try server.listen(on: socket, isTrusted: false)
    let address = HTTPListener.boundAddress(of: socket)
    let port = try #require(address.split(separator: ":").last.flatMap { Int($0) })
    #expect(sockets.count == 1 && address == "127.0.0.1:\(port)" && port > 0)
    let client = try #require(LoopbackPort.connected(to: port))
    let isDone = condition ?? { Self.canRead(client) }
    let bytes = Array(request.utf8)
    #expect(unsafe send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    if closes { close(client) }
    let deadline = EventLoop.now().advanced(by: .seconds(60))
    // Makes a batch now and then, in which to look whether it is done.
    var timer: LoopTimer?
    timer = try loop.makeTimer {
      let now = EventLoop.now()
      if now >= deadline { loop.stop() }
      timer?.arm(at: now.advanced(by: .milliseconds(10)))
    }
    timer?.arm(at: EventLoop.now())
    loop.afterBatch = {
      if isDone() { loop.stop() }
      server.answerResumed()
      if isDone() { loop.stop() }
    }
    loop.run()
    loop.afterBatch = nil
    timer?.cancel()
    timer = nil
    #expect(isDone())
    server.close()
    guard !closes else { return "" }
    defer { close(client) }
    var answer = [UInt8](repeating: 0, count: 65_536)
    let count = unsafe recv(client, &answer, answer.count, Int32(MSG_DONTWAIT))
    return String(decoding: answer.prefix(max(0, count)), as: UTF8.self)
  }

  private static func canRead(_ descriptor: Int32) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&request, 1, 0) > 0
  }

  @Test func `a stream that retains its exchange is freed with its client`() throws {
    let service = Service()
    weak var stream: Stream?
    weak var exchange: HTTPExchange?
    var ends = 0
    service.onRequest = { request in
      let fresh = Stream(request, [.bytes(Array("first".utf8))])
      stream = fresh
      exchange = request
      request.onEnd = { _ in ends += 1 }
      request.respond(HTTPResponse(status: 200, body: .stream(fresh)))
    }

    _ = try talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n", closes: true, service: service) { ends > 0 }

    #expect(ends == 1)
    #expect(stream == nil)
    #expect(exchange == nil)
  }

  @Test func `a later response is sent, and a second one is dropped`() throws {
    let service = Service()
    var ends = 0
    var waiting: HTTPExchange?
    service.onRequest = { request in
      request.onEnd = { _ in ends += 1 }
      waiting = request
    }

    let answer = try talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n", service: service) {
      // After the batch that brought the request: it is suspended by now.
      waiting?.respond(HTTPResponse(status: 202, type: "text/plain", Array("one".utf8)))
      waiting?.respond(Problem(500, "late", "late"))
      waiting = nil
      return ends > 0
    }

    #expect(answer.hasPrefix("HTTP/1.1 202 Accepted\r\n"))
    #expect(answer.hasSuffix("\r\n\r\none"))
    #expect(answer.contains("\r\nX-Content-Type-Options: nosniff\r\n"))
  }

  @Test func `an aborted stream is seen as incomplete`() throws {
    let service = Service()
    var ends = 0
    service.onRequest = { request in
      request.onEnd = { _ in ends += 1 }
      let pieces: [ResponsePiece] = [.bytes(Array("half".utf8)), .abort]
      request.respond(HTTPResponse(status: 200, body: .stream(Stream(request, pieces))))
    }

    let answer = try talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n", service: service) { ends > 0 }

    #expect(answer.contains("half"))
    #expect(!answer.hasSuffix("0\r\n\r\n"))
  }

  @Test(arguments: [
    ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"),
    ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n1", "400"),
    ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", "400"),
    ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n1", "400"),
    ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"),
    ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length\t: 1\r\n\r\n1", "400"),
    ("GET / HTTP/1.1\r\n X: y\r\nHost: x\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX(1): y\r\n\r\n", "400"),
    ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX: \(String(repeating: "x", count: 9000))\r\n\r\n", "431"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX: \(String(repeating: "x", count: 40_000))\r\n\r\n", "431"),
    ("GET /\(String(repeating: "x", count: 40_000)) HTTP/1.1\r\nHost: x\r\n\r\n", "414"),
  ])
  func `a request that no service should see is refused once`(
    request: String,
    status: String
  ) throws {
    let service = Service()
    var requests = 0
    service.onRequest = { exchange in
      requests += 1
      exchange.drop()
    }

    let answer = try talk(request, service: service)

    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
    #expect(requests == 0)
    #expect(answer.firstRange(of: "\r\nConnection: close\r\n") != nil || status != "400")
  }
}
