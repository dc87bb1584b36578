// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CMicroHTTPD
internal import Devices
internal import LastOut
internal import Operations

/// One request and its answer, which may come later.
@safe package final class HTTPExchange {
  private enum Stage {
    /// The head is not whole yet.
    case head
    /// The body comes.
    case body
    /// Everything has come; the answer is awaited.
    case deciding
    /// The answer is with the library.
    case answered
  }

  /// The request; complete with its body once ``HTTPService/complete(_:)`` is called.
  package private(set) var request: HTTPRequest
  /// Whether the client is trusted as it is, as on a unix socket.
  package let isTrusted: Bool
  /// The client's address.
  package let peer: String
  /// Takes the body as it comes; set while the head is looked at.
  package var onBody: ((Span<UInt8>) -> Void)?
  /// Called once when the exchange is over, answered or not.
  package var onEnd: ((_ isTooSlow: Bool) -> Void)?
  /// The client is gone, or is to go.
  private(set) var isLost = false
  private weak var connection: HTTPConnection?
  /// The library's connection; valid until ``ended(isTooSlow:)``.
  private var pointer: OpaquePointer?
  private var stage = Stage.head
  private var response: HTTPResponse?
  private var isSuspended = false
  /// The library's code is further up the stack, for this very exchange.
  private var isInside = false
  /// Bytes of the body that were thrown away.
  private var excess = 0
  private let mistake: RequestTarget.Mistake?

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
    case .answered: if case .stream? = response?.body { true } else { false }
    }
  }

  // MARK: - For those who answer

  /// Answers; a second answer is dropped.
  package func respond(_ response: HTTPResponse) {
    guard self.response == nil, !isLost else { return }
    self.response = response
    wake()
  }

  package func respond(_ problem: Problem) { respond(problem.response) }

  /// Asks a streamed answer for more.
  package func wake() {
    guard isSuspended, let pointer = unsafe pointer else { return }
    isSuspended = false
    unsafe MHD_resume_connection(pointer)
    connection?.server?.noteResumed()
  }

  /// Ends the connection without an answer, or in the middle of it.
  package func drop() { connection?.end() }

  // MARK: - For the server

  /// Goes on without an answer: whatever comes now ends the connection.
  func abandon() {
    isLost = true
    wake()
  }

  /// Takes a part of the body.
  func take(_ bytes: Span<UInt8>) {
    guard response == nil, let server = connection?.server else { return }
    if let onBody { return onBody(bytes) }
    guard request.body.count + bytes.count <= server.limits.body, excess == 0 else {
      excess += bytes.count
      // What is a little too long is read to its end, so that the refusal can be said.
      if excess > 16 * server.limits.body { isLost = true }
      return
    }
    request.body.reserveCapacity(request.body.count + bytes.count)
    for position in bytes.indices { request.body.append(bytes[position]) }
  }

  /// The head or the end of the body has come, or the connection was resumed.
  func proceed(method: String) -> MHD_Result {
    guard !isLost, let connection, let server = connection.server, let service = server.service
    else { return .NO }
    isInside = true
    defer { isInside = false }
    switch stage {
    case .head:
      connection.headSince = nil
      request.method = method
      readHeaders()
      refuseHead(server)
      if response == nil { service.begin(self) }
      if response != nil { return queue() }
      stage = .body
      server.setDeadline(
        of: connection,
        after: request.hasBody && onBody == nil ? server.limits.bodyTime : nil
      )
      return .YES
    case .body:
      stage = .deciding
      server.setDeadline(of: connection, after: nil)
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

  /// Nothing of the library is valid any more.
  func ended(isTooSlow: Bool) {
    unsafe pointer = nil
    isLost = true
    isSuspended = false
    // A stream may hold this exchange.
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

  /// Collects headers while the library names them.
  private final class HeaderBox {
    var headers: [HTTPHeader] = []
  }

  /// Refuses what no service should see.
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
          "the head has \(size) bytes; at most \(server.limits.head) are taken"
        )
      )
    }
    let lengths = request.values(of: "Content-Length")
    let codings = request.values(of: "Transfer-Encoding")
    if lengths.count + codings.count > 1 {
      return respond(Self.unclear("the length of the body is stated more than once"))
    }
    if let length = lengths.first, length.isEmpty || Int(length) == nil || length.first == "+" {
      return respond(Self.unclear("Content-Length is no number"))
    }
    if let coding = codings.first, coding.lowercased() != "chunked" {
      return respond(
        Self.unclear("the only Transfer-Encoding taken is chunked; found '\(coding.prefix(40))'")
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

  /// Refuses a body that is too long by its own statement; called by services that collect it.
  package func refuseLongBody() {
    guard let limit = connection?.server?.limits.body, let length = request.contentLength,
      length > limit
    else { return }
    respond(tooLong(limit))
  }

  private func tooLong(_ limit: Int) -> Problem {
    let found =
      request.contentLength.map { "\($0) bytes; at most \(limit) are taken" }
      ?? "more than \(limit) bytes, which is the limit"
    return Problem(413, "body_too_long", "the body has \(found)")
  }

  // MARK: - Answer

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
    if let connection {
      connection.server?.setDeadline(of: connection, after: nil)
      connection.server?.noteAnswer(response.status)
    }
    let made: OpaquePointer?
    switch response.body {
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
      let feed = ResponseFeed(stream: stream, exchange: self)
      let context = unsafe Unmanaged.passRetained(feed).toOpaque()
      unsafe made = MHD_create_response_from_callback(
        settle_http_unknown_size,
        4096,
        { context, _, buffer, room in unsafe ResponseFeed.fill(context, buffer, room) },
        context,
        { context in
          if let context = unsafe context {
            unsafe Unmanaged<ResponseFeed>.fromOpaque(context).release()
          }
        }
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

  private static let commonHeaders = [
    HTTPHeader("Cache-Control", "no-store"), HTTPHeader("X-Content-Type-Options", "nosniff"),
    HTTPHeader("Referrer-Policy", "no-referrer"),
    HTTPHeader("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// A stream has nothing for now.
  func pause() -> Bool {
    guard !isLost, let pointer = unsafe pointer else { return false }
    isSuspended = true
    unsafe MHD_suspend_connection(pointer)
    return true
  }
}
