// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import LastOut
package import Operations

/// One client connection.
final class HTTPConnection {
  weak var server: HTTPServer?
  let descriptor: Int32
  /// The client's address, without its port.
  let peer: String
  let isTrusted: Bool
  /// When the client must have sent or read more.
  var deadline: Moment?
  /// Since when the connection is between two requests; `nil` during one and before the first.
  var idleSince: Moment?
  /// Since when the client has neither completed its request nor read more of its response; `nil`
  /// between two requests, and while the client waits for the gateway.
  private(set) var stalledSince: Moment?
  /// The current request.
  var exchange: HTTPExchange?
  private var hangUp: IOWatch?
  /// The library has closed the socket.
  private var isOver = false

  init(server: HTTPServer, descriptor: Int32, peer: String, isTrusted: Bool) {
    self.server = server
    self.descriptor = descriptor
    self.peer = peer
    self.isTrusted = isTrusted
  }

  /// It is the client's turn: it must send or read more within `time`, or the connection ends.
  func waitForClient(within time: Duration) {
    stalledSince = EventLoop.now()
    server?.setDeadline(of: self, after: time)
  }

  /// It is the gateway's turn, or the client may be silent.
  func stopWaitingForClient() {
    stalledSince = nil
    server?.setDeadline(of: self, after: nil)
  }

  /// Whether the client makes no progress; one that was sent a part of a response a moment ago may
  /// be reading it.
  func isStalled(at now: Moment) -> Bool {
    guard let stalledSince else { return false }
    return exchange?.isAnswered != true || stalledSince.duration(to: now) >= .seconds(1)
  }

  /// Looks whether the client goes away, which the library does not notice while it reads nothing,
  /// or when the end came together with part of a request.
  func watchHangUp() {
    guard hangUp == nil, let server else { return }
    hangUp = try? server.loop.watch(descriptor, for: .hangUp, named: "HTTP client disconnected") {
      [weak self] _ in self?.hangUpCame()
    }
  }

  private func stopWatching() {
    hangUp?.cancel()
    hangUp = nil
  }

  private func hangUpCame() {
    stopWatching()  // It would be reported again and again.
    guard let server else { return }
    if exchange?.isReceiving ?? true {
      // What came before the end may complete a request, which is answered; what it waits for
      // watches again.
      server.run()
      guard !isOver, exchange?.isReceiving ?? true, isAtEnd else { return }
      end()
      server.run()
    } else if exchange?.isWaiting ?? false {
      end()
      server.answerResumed()
    }
  }

  /// Whether nothing more comes from the client.
  private var isAtEnd: Bool {
    var byte: UInt8 = 0
    let count = unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
    return count == 0 || (count < 0 && errno != EAGAIN)
  }

  /// Ends the connection; the library closes it the next time it runs.
  func end() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    exchange?.abandon()
  }

  /// Ends the connection because its request did not arrive in time.
  func endAsTooSlow() {
    end(saying: Problem(408, "too_slow", "the request did not arrive in time"))
  }

  /// Sends the reason, unless a response has started, and ends the connection.
  func end(saying problem: Problem) {
    deadline = nil
    if exchange?.isAnswered != true {
      HTTPListener.reject(problem, on: descriptor)
      server?.recordResponse(problem.status)
    }
    end()
  }

  func ended() {
    isOver = true
    stopWatching()
    deadline = nil
    exchange?.ended(isTooSlow: false)
    exchange = nil
  }
}

/// A listening socket, and operations on sockets that the library does not own.
package struct HTTPListener {
  let descriptor: Int32
  let watch: IOWatch

  func close() {
    watch.cancel()
    Glibc.close(descriptor)
  }

  /// Binds and listens on every address of a host that this machine has.
  ///
  /// `host` is an address or a name; resolving it may take as long as the system's resolver.
  /// With port 0 the kernel chooses a port for each address; see ``boundAddress(of:)``.
  /// `loopbackOnly` refuses addresses that other machines can reach.
  package static func sockets(
    host: String,
    port: Int,
    loopbackOnly: Bool
  ) throws(OperationsError) -> [Int32] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    var found: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, String(port), &hints, &found)
    guard code == 0, let first = unsafe found else {
      throw OperationsError(
        call: "resolve \(host)",
        code: code,
        reason: unsafe String(cString: gai_strerror(code))
      )
    }
    defer { unsafe freeaddrinfo(first) }
    return try unsafe sockets(for: first, "\(host):\(port)", loopbackOnly: loopbackOnly)
  }

  /// Binds every address of a list that this machine has, at least one.
  ///
  /// A name may have addresses of a family that is off, as `localhost` has where IPv6 is.
  static func sockets(
    for first: UnsafeMutablePointer<addrinfo>,
    _ name: String,
    loopbackOnly: Bool
  ) throws(OperationsError) -> [Int32] {
    var sockets: [Int32] = []
    var missing: OperationsError?
    var next: UnsafeMutablePointer<addrinfo>? = unsafe first
    while let entry = unsafe next {
      unsafe next = entry.pointee.ai_next
      do throws(OperationsError) {
        sockets.append(try unsafe socket(for: entry.pointee, name, loopbackOnly: loopbackOnly))
      } catch {
        missing = error
        if error.code == EADDRNOTAVAIL || error.code == EAFNOSUPPORT { continue }
        for socket in sockets { Glibc.close(socket) }
        throw error
      }
    }
    if sockets.isEmpty, let missing { throw missing }
    return sockets
  }

  private static func socket(
    for entry: addrinfo,
    _ name: String,
    loopbackOnly: Bool
  ) throws(OperationsError) -> Int32 {
    if loopbackOnly, unsafe !isLoopback(entry.ai_addr) {
      throw OperationsError(
        call: "bind \(name)",
        code: EACCES,
        reason: "the name has an address beyond this machine, which requires http.token_file"
      )
    }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = unsafe Glibc.socket(entry.ai_family, type, 0)
    guard descriptor >= 0 else { throw OperationsError(call: "socket", code: errno) }
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    if unsafe entry.ai_family == AF_INET6 {
      unsafe setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size)
    }
    guard unsafe bind(descriptor, entry.ai_addr, entry.ai_addrlen) == 0,
      Glibc.listen(descriptor, 512) == 0
    else {
      let code = errno
      Glibc.close(descriptor)
      throw OperationsError(call: "bind \(name)", code: code)
    }
    return descriptor
  }

  private static func isLoopback(_ address: UnsafeMutablePointer<sockaddr>?) -> Bool {
    guard let address = unsafe address else { return false }
    switch Int32(unsafe address.pointee.sa_family) {
    case AF_INET:
      return unsafe address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        unsafe UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 24 == 127
      }
    case AF_INET6:
      return unsafe address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        unsafe withUnsafeBytes(of: &$0.pointee.sin6_addr) { bytes in
          unsafe bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
        }
      }
    default: return false
    }
  }

  /// Limits how much of unread responses the kernel buffers.
  static func limitSendBuffer(of descriptor: Int32) {
    var bytes: Int32 = 64 * 1024
    let size = socklen_t(MemoryLayout<Int32>.size)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, size)
  }

  /// Sends the reason for closing a connection to a client that has received no response.
  static func reject(_ problem: Problem, on descriptor: Int32) {
    let message = problem.closingMessage
    _ = unsafe message.withUnsafeBytes {
      unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
  }

  /// The address of a bound TCP socket, such as `127.0.0.1:8484` or `[::1]:8484`.
  package static func boundAddress(of descriptor: Int32) -> String {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &size)
      }
    }
    // Both families keep the port in the same place.
    let port = unsafe withUnsafeBytes(of: &address) {
      unsafe UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self))
    }
    let host = text(of: &address)
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  /// The address of a client, without its port; `unix` for a Unix socket.
  static func text(of address: inout sockaddr_storage) -> String {
    let size: socklen_t
    switch Int32(address.ss_family) {
    case AF_INET: size = socklen_t(MemoryLayout<sockaddr_in>.size)
    case AF_INET6: size = socklen_t(MemoryLayout<sockaddr_in6>.size)
    default: return "unix"
    }
    var buffer = [CChar](repeating: 0, count: 64)
    let code = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getnameinfo($0, size, &buffer, 64, nil, 0, NI_NUMERICHOST)
      }
    }
    guard code == 0 else { return "" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
