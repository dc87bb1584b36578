// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CMicroHTTPD
internal import LastOut
internal import Operations
internal import Values

/// One request and its response, which may follow later.
@safe package final class HTTPExchange {
  private enum Stage {
    /// The head is incomplete.
    case head
    /// The body is arriving.
    case body
    /// The request is complete; the response is awaited.
    case deciding
    /// The library has the response.
    case answered
  }

  /// The request; complete with its body once ``HTTPService/complete(_:)`` is called.
  package private(set) var request: HTTPRequest
  /// Whether the client needs no token, as on a Unix socket.
  package let isTrusted: Bool
  /// The client's address.
  package let peer: String
  /// The key under which the service keeps the answer; `nil` once it has.
  package var idempotencyKey: String?
  /// Receives the body in parts; set in ``HTTPService/begin(_:)``.
  package var onBody: ((Span<UInt8>) -> Void)?
  /// Called once at the end of the exchange, answered or not.
  package var onEnd: ((_ isTooSlow: Bool) -> Void)?
  /// Whether the client has disconnected or must be disconnected.
  private(set) var isLost = false
  private weak var connection: HTTPConnection?
  /// The library's connection; valid until ``ended(isTooSlow:)``.
  private var pointer: OpaquePointer?
  private var stage = Stage.head
  private var response: HTTPResponse?
  private var isSuspended = false
  /// Whether a library callback for this exchange is on the stack.
  private var isInside = false
  /// The number of discarded bytes of the body.
  private var excess = 0
  private let mistake: RequestTarget.Mistake?
  /// How much of a large body is passed to the library at once.
  private static let blockSize = 16 * 1024

  init(connection: HTTPConnection, pointer: OpaquePointer, target: String) {
    self.connection = connection
    unsafe self.pointer = pointer
    isTrusted = connection.isTrusted
    peer = connection.peer
    do throws(RequestTarget.Mistake) {
      request = HTTPRequest(method: "", target: try RequestTarget(target))
      mistake = nil
    } catch {
      request = HTTPRequest(method: "", target: RequestTarget.empty)
      mistake = error
    }
  }

  var isAnswered: Bool { response != nil }

  /// Whether part of the request has not come.
  var isReceiving: Bool { stage == .head || stage == .body }

  /// Whether the client waits, for an answer or for more of a stream.
  var isWaiting: Bool {
    switch stage {
    case .head, .body: false
    case .deciding: true
    case .answered:
      if case .stream(let stream)? = response?.body {
        stream.isEndless || isSuspended
      } else {
        false
      }
    }
  }

  // MARK: - For the service

  /// Sends the response; a second response is dropped.
  package func respond(_ response: HTTPResponse) {
    guard self.response == nil, !isLost else { return }
    self.response = response
    wake()
  }

  package func respond(_ problem: Problem) { respond(problem.response) }

  /// Continues a streamed response.
  package func wake() {
    guard isSuspended, let pointer = unsafe pointer else { return }
    isSuspended = false
    unsafe MHD_resume_connection(pointer)
    connection?.server?.markResumed()
  }

  /// Gives the rest of the body as much time again: a complete part of it has arrived.
  package func renewBodyTime() {
    guard stage == .body, let connection, let server = connection.server else { return }
    connection.waitForClient(within: server.limits.bodyTime)
  }

  /// Ends the connection without a response, or in the middle of it.
  package func drop() { connection?.end() }

  // MARK: - For the server

  /// Goes on without a response: anything received now ends the connection.
  func abandon() {
    isLost = true
    wake()
  }

  /// Handles a part of the body.
  func receive(_ bytes: Span<UInt8>) {
    guard response == nil, let server = connection?.server else { return }
    if let onBody { return onBody(bytes) }
    guard request.body.count + bytes.count <= server.limits.body, excess == 0 else {
      excess += bytes.count
      // A body slightly above the limit is read to its end, so that the refusal can be sent.
      if excess > 16 * server.limits.body { isLost = true }
      return
    }
    request.body.reserveCapacity(request.body.count + bytes.count)
    for position in bytes.indices { request.body.append(bytes[position]) }
  }

  /// Handles a complete head, a complete body or a resumed connection.
  func handle(method: String) -> MHD_Result {
    guard !isLost, let connection, let server = connection.server, let service = server.service
    else { return .NO }
    isInside = true
    defer { isInside = false }
    switch stage {
    case .head:
      request.method = method
      readHeaders()
      refuseHead(server)
      if response == nil { service.begin(self) }
      if response != nil { return queue() }
      stage = .body
      connection.waitForClient(within: server.limits.bodyTime)
      return .YES
    case .body:
      stage = .deciding
      connection.stopWaitingForClient()
      if excess > 0 {
        respond(tooLong(server.limits.body))
      } else {
        service.complete(self)
      }
    case .deciding: break
    case .answered: return .NO
    }
    if isLost { return .NO }
    return response == nil ? suspend() : queue()
  }

  /// Handles the end; the library's pointers are no longer valid.
  func ended(isTooSlow: Bool) {
    unsafe pointer = nil
    isLost = true
    isSuspended = false
    // The stream may retain this exchange.
    response = nil
    let onEnd = onEnd
    self.onEnd = nil
    onBody = nil
    onEnd?(isTooSlow)
  }

  // MARK: - Head

  private func readHeaders() {
    let box = HeaderBox()
    let context = unsafe Unmanaged.passUnretained(box).toOpaque()
    _ = unsafe MHD_get_connection_values(
      pointer,
      .HEADER_KIND,
      { context, _, name, value in
        if let context = unsafe context, let name = unsafe name {
          let box = unsafe Unmanaged<HeaderBox>.fromOpaque(context).takeUnretainedValue()
          let text = unsafe value.map { unsafe String(cString: $0) } ?? ""
          box.headers.append(HTTPHeader(unsafe String(cString: name), text))
        }
        return .YES
      },
      context
    )
    request.headers = box.headers
  }

  /// Collects the headers that the library enumerates.
  private final class HeaderBox {
    var headers: [HTTPHeader] = []
  }

  /// Refuses invalid heads before the service sees them.
  private func refuseHead(_ server: HTTPServer) {
    guard let pointer = unsafe pointer else { return }
    if let mistake {
      return respond(Problem(400, "bad_request", mistake.message))
    }
    if let header = request.headers.first(where: { !$0.isNamed }) {
      return respond(Self.unclear("'\(Excerpt.of(header.name))' is not the name of a header"))
    }
    let size = unsafe settle_http_header_size(pointer)
    if size > server.limits.head {
      return respond(
        Problem(
          431,
          "head_too_long",
          "the head has \(size) bytes; the limit is \(server.limits.head)"
        )
      )
    }
    let lengths = request.values(of: "Content-Length")
    let codings = request.values(of: "Transfer-Encoding")
    if lengths.count + codings.count > 1 {
      return respond(Self.unclear("the length of the body is stated more than once"))
    }
    if let length = lengths.first, length.isEmpty || Int(length) == nil || length.first == "+" {
      return respond(Self.unclear("Content-Length is not a number"))
    }
    if let coding = codings.first, coding.lowercased() != "chunked" {
      return respond(
        Self.unclear(
          "the only supported Transfer-Encoding is chunked; found '\(coding.prefix(40))'"
        )
      )
    }
    if request.values(of: "Host").count > 1 {
      return respond(Problem(400, "bad_request", "there is more than one Host header"))
    }
  }

  /// Refuses a request whose end is not certain: the connection is closed, so that nothing that
  /// follows is taken for another request.
  private static func unclear(_ detail: String) -> Problem {
    Problem(400, "bad_request", detail, headers: [HTTPHeader("Connection", "close")])
  }

  /// Refuses a body whose Content-Length is above the limit; called by services that collect it.
  package func refuseLongBody() {
    guard let limit = connection?.server?.limits.body, let length = request.contentLength,
      length > limit
    else { return }
    respond(tooLong(limit))
  }

  private func tooLong(_ limit: Int) -> Problem {
    let found =
      request.contentLength.map { "\($0) bytes; the limit is \(limit)" }
      ?? "more than \(limit) bytes, which is the limit"
    return Problem(413, "body_too_long", "the body has \(found)")
  }

  // MARK: - Response

  private func suspend() -> MHD_Result {
    guard let pointer = unsafe pointer else { return .NO }
    isSuspended = true
    unsafe MHD_suspend_connection(pointer)
    connection?.watchHangUp()
    return .YES
  }

  private func queue() -> MHD_Result {
    guard let response, let pointer = unsafe pointer else { return .NO }
    stage = .answered
    connection?.server?.recordResponse(response.status)
    waitForReader()
    let made: OpaquePointer?
    switch response.body {
    case .bytes(let bytes) where bytes.count > Self.blockSize:
      // In blocks, each of which shows that the client reads.
      unsafe made = makeResponse(
        ResponseFeed(bytes, exchange: self),
        size: UInt64(bytes.count),
        block: Self.blockSize
      )
    case .bytes(let bytes):
      unsafe made = bytes.withUnsafeBytes { buffer in
        // With this mode the library copies the bytes and does not change them.
        unsafe MHD_create_response_from_buffer(
          buffer.count,
          UnsafeMutableRawPointer(mutating: buffer.baseAddress),
          .RESPMEM_MUST_COPY
        )
      }
    case .stream(let stream):
      unsafe made = makeResponse(
        ResponseFeed(stream, exchange: self),
        size: settle_http_unknown_size,
        block: 4096
      )
      connection?.watchHangUp()
    }
    guard let made = unsafe made else { return .NO }
    defer { unsafe MHD_destroy_response(made) }
    let common = Self.commonHeaders.filter { header in
      !response.headers.contains { $0.isCalled(header.name) }
    }
    for header in response.headers + common {
      _ = unsafe MHD_add_response_header(made, header.name, header.value)
    }
    return unsafe MHD_queue_response(pointer, UInt32(response.status), made)
  }

  private func makeResponse(_ feed: ResponseFeed, size: UInt64, block: Int) -> OpaquePointer? {
    let context = unsafe Unmanaged.passRetained(feed).toOpaque()
    return unsafe MHD_create_response_from_callback(
      size,
      block,
      { context, _, buffer, room in unsafe ResponseFeed.fill(context, buffer, room) },
      context,
      { context in
        if let context = unsafe context {
          unsafe Unmanaged<ResponseFeed>.fromOpaque(context).release()
        }
      }
    )
  }

  /// The client has part of the response to read; one of an endless stream may take its time.
  func waitForReader() {
    guard let connection, let server = connection.server else { return }
    if case .stream(let stream)? = response?.body, stream.isEndless {
      return connection.stopWaitingForClient()
    }
    connection.waitForClient(within: server.limits.responseTime)
  }

  private static let commonHeaders = [
    HTTPHeader("Cache-Control", "no-store"), HTTPHeader("X-Content-Type-Options", "nosniff"),
    HTTPHeader("Referrer-Policy", "no-referrer"),
    HTTPHeader("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// Suspends a stream that has nothing to send.
  func pause() -> Bool {
    guard !isLost, let pointer = unsafe pointer else { return false }
    connection?.stopWaitingForClient()
    connection?.watchHangUp()
    isSuspended = true
    unsafe MHD_suspend_connection(pointer)
    return true
  }
}

/// The source from which the library reads a response in blocks.
final class ResponseFeed {
  /// The source of what follows ``rest``; `nil` if nothing does.
  private let stream: (any ResponseStream)?
  private weak var exchange: HTTPExchange?
  /// Bytes that have not been read.
  private var rest: ArraySlice<UInt8> = []

  init(_ stream: any ResponseStream, exchange: HTTPExchange) {
    self.stream = stream
    self.exchange = exchange
  }

  init(_ bytes: [UInt8], exchange: HTTPExchange) {
    stream = nil
    rest = bytes[...]
    self.exchange = exchange
  }

  /// Writes at most `room` bytes; the library calls again after sending them.
  static func fill(
    _ context: UnsafeMutableRawPointer?,
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ room: Int
  ) -> Int {
    guard let context = unsafe context, let buffer = unsafe buffer else {
      return settle_http_end_with_error
    }
    let feed = unsafe Unmanaged<ResponseFeed>.fromOpaque(context).takeUnretainedValue()
    return unsafe feed.fill(UnsafeMutableRawBufferPointer(start: buffer, count: room))
  }

  private func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let exchange, !exchange.isLost else { return settle_http_end_with_error }
    if rest.isEmpty {
      switch stream?.next(buffer.count) ?? .end {
      case .bytes(let bytes): rest = bytes[...]
      case .wait: return exchange.pause() ? 0 : settle_http_end_with_error
      case .end: return settle_http_end_of_stream
      case .abort: return settle_http_end_with_error
      }
    }
    let part = rest.prefix(buffer.count)
    unsafe buffer.copyBytes(from: part)
    rest = rest.dropFirst(part.count)
    exchange.waitForReader()
    return part.count
  }
}
