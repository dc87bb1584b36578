// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CMicroHTTPD
internal import Glibc
package import LastOut
package import Operations

/// Serves HTTP on the event loop's thread, with libmicrohttpd for the protocol.
///
/// The library has no thread and no listening socket: the server accepts connections and passes
/// them to the library, the loop watches its epoll descriptor, and its timeout is a timer of the
/// loop.
@safe package final class HTTPServer {
  /// The limits for clients.
  package struct Limits: Sendable {
    /// The maximum number of connections.
    package var clients = 64
    /// The maximum size of a collected body, in bytes.
    package var body = 64 * 1024
    /// The maximum size of a request's head, in bytes.
    package var head = 8 * 1024
    /// How long a head may take, from the connection or its first line.
    package var headTime: Duration = .seconds(5)
    /// How long a collected body may take, or each part of a body that the service receives in
    /// parts.
    package var bodyTime: Duration = .seconds(10)
    /// How long a client may read nothing of a response, unless that is an endless stream.
    package var responseTime: Duration = .seconds(10)
    /// The seconds of inactivity after which a connection is closed.
    package var idleSeconds = 60

    package init() {}
  }

  /// The number of responses by status, including those to requests that the service never saw.
  package private(set) var answers: [Int: UInt64] = [:]
  let limits: Limits
  unowned let loop: EventLoop
  private(set) weak var service: (any HTTPService)?
  /// The library's daemon; `nil` once closed.
  private var daemon: OpaquePointer?
  private var watch: IOWatch?
  private var timer: LoopTimer?
  private var listeners: [HTTPListener] = []
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  /// Connections that the library has been given and has not begun to serve, by descriptor.
  private var starting: [Int32: HTTPConnection] = [:]
  private var isRunning = false
  /// Whether a connection was resumed since the library last ran.
  private var needsRun = false
  /// When the timer is due; only moved forward.
  private var due: Moment?
  private var acceptor = ConnectionAcceptor()

  package init(
    loop: EventLoop,
    limits: Limits,
    service: any HTTPService
  ) throws(OperationsError) {
    self.loop = loop
    self.limits = limits
    self.service = service
    unsafe daemon = nil
    let this = unsafe Unmanaged.passUnretained(self).toOpaque()
    guard
      let started = unsafe settle_http_start(
        { context, connection, _, method, _, bytes, count, _ in
          unsafe HTTPServer.handle(context, connection, method, bytes, count)
        },
        { context, target, connection in
          unsafe HTTPServer.begin(context, target, connection)
          return nil
        },
        { _, connection, _, code in unsafe HTTPServer.completed(connection, code) },
        { context, connection, place, code in
          unsafe HTTPServer.changed(context, connection, place, code)
        },
        this,
        UInt32(limits.clients + 16),
        limits.head + 16 * 1024,
        UInt32(limits.idleSeconds)
      )
    else { throw OperationsError(call: "MHD_start_daemon", code: errno) }
    unsafe daemon = started
    watch = try unsafe loop.watch(settle_http_epoll(started), for: .read, named: "HTTP") {
      [unowned self] _ in run()
    }
    timer = try loop.makeTimer(named: "HTTP timeouts") { [unowned self] in timePassed() }
  }

  deinit {
    close()
  }

  /// The number of open connections.
  package var connectionCount: Int { connections.count }

  /// Accepts connections from a listening socket, and takes ownership of it.
  ///
  /// With `isTrusted`, clients need no token, because the file mode of a Unix socket restricts
  /// them.
  package func listen(on descriptor: Int32, isTrusted: Bool) throws(OperationsError) {
    let watch: IOWatch
    do throws(OperationsError) {
      watch = try loop.watch(descriptor, for: .read, named: "HTTP connections") {
        [unowned self] _ in accept(descriptor, isTrusted: isTrusted)
      }
    } catch {
      Glibc.close(descriptor)
      throw error
    }
    listeners.append(HTTPListener(descriptor: descriptor, watch: watch))
  }

  /// Stops accepting connections; open ones stay.
  package func stopListening() {
    for listener in listeners { listener.close() }
    listeners = []
  }

  /// Closes all connections; the last responses are still passed to the kernel.
  package func close() {
    guard let daemon = unsafe daemon else { return }
    stopListening()
    for connection in connections.values { connection.exchange?.abandon() }
    run()
    watch?.cancel()
    watch = nil
    timer?.cancel()
    timer = nil
    unsafe self.daemon = nil
    unsafe MHD_stop_daemon(daemon)
    connections = [:]
  }

  /// Continues resumed connections; called after each batch of the loop.
  package func answerResumed() {
    if needsRun { run() }
  }

  // MARK: - Accepting connections

  private func accept(_ listener: Int32, isTrusted: Bool) {
    accepting: for _ in 0..<64 {
      switch acceptor.accept(from: listener) {
      case .connection(let descriptor):
        HTTPListener.limitSendBuffer(of: descriptor)
        start(descriptor, isTrusted: isTrusted)
      case .outOfDescriptors:
        service?.connectionRefused(reason: "no file descriptors left", at: EventLoop.now())
        break accepting
      case .none: break accepting
      }
    }
    run()
  }

  private func start(_ descriptor: Int32, isTrusted: Bool) {
    guard makeRoom() else {
      service?.connectionRefused(reason: "too many clients", at: EventLoop.now())
      HTTPListener.reject(tooManyClients, on: descriptor)
      recordResponse(tooManyClients.status)
      Glibc.close(descriptor)
      return
    }
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = unsafe getpeername(descriptor, $0, &size)
      }
    }
    let fresh = HTTPConnection(
      server: self,
      descriptor: descriptor,
      peer: HTTPListener.text(of: &address),
      isTrusted: isTrusted
    )
    starting[descriptor] = fresh
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe MHD_add_connection(daemon, descriptor, $0, size)
      }
    }
    if result != .YES { starting[descriptor] = nil }
  }

  private var tooManyClients: Problem {
    Problem(
      503,
      "limit",
      "\(limits.clients) clients are connected, which is the limit",
      headers: [HTTPHeader("Retry-After", "5")]
    )
  }

  /// Makes room for one more connection; `false` if all other clients wait for the gateway.
  ///
  /// The connection that has been between two requests for longest goes, else one whose client has
  /// neither completed its request nor read its response: of the address that has most of them, the
  /// one that has stalled for longest. Where one address has half of all connections as such, those
  /// go first.
  private func makeRoom() -> Bool {
    if connections.count + starting.count < limits.clients { return true }
    run()  // Received bytes may complete requests, or end connections.
    if connections.count < limits.clients { return true }
    let now = EventLoop.now()
    let stalled = StalledConnections(connections.values.lazy.filter { $0.isStalled(at: now) })
    let isCrowded = stalled.count >= max(1, limits.clients / 2)
    if !isCrowded, let idle = longestIdle {
      idle.idleSince = nil
      idle.end()
    } else if let oldest = StalledConnections(connections.values).oldest {
      oldest.stopWaitingForClient()
      oldest.end(saying: tooManyClients)
    }
    run()
    return connections.count < limits.clients
  }

  /// The connection that has been between two requests for longest.
  private var longestIdle: HTTPConnection? {
    let idle = connections.values.compactMap { connection in
      connection.idleSince.map { (connection: connection, since: $0) }
    }
    return idle.min { $0.since < $1.since }?.connection
  }

  // MARK: - Running the library

  func recordResponse(_ status: Int) { answers[status, default: 0] += 1 }

  /// Records that a connection was resumed, so that the library runs again.
  func markResumed() { needsRun = true }

  func run() {
    guard let daemon = unsafe daemon, !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    var timeout: UInt64 = 0
    var hasTimeout = false
    // A bounded number of rounds, so that no client blocks the loop.
    for _ in 0..<8 {
      needsRun = false
      _ = unsafe MHD_run(daemon)
      hasTimeout = unsafe MHD_get_timeout(daemon, &timeout) == .YES
      if !needsRun, !hasTimeout || timeout > 0 { break }
    }
    // The library has begun to serve all that it was given, or has closed them.
    starting = [:]
    guard hasTimeout || needsRun else { return }
    let wait = needsRun ? 0 : Int64(clamping: min(timeout, 3_600_000))
    arm(at: EventLoop.now().advanced(by: .milliseconds(wait)))
  }

  private func arm(at moment: Moment) {
    if let due, due <= moment { return }
    due = moment
    timer?.arm(at: moment)
  }

  private func timePassed() {
    due = nil
    let now = EventLoop.now()
    for connection in connections.values {
      guard let deadline = connection.deadline else { continue }
      if deadline <= now {
        connection.endAsTooSlow()
      } else {
        arm(at: deadline)
      }
    }
    run()
  }

  /// Ends the connection after `time`, unless the deadline is set again; `nil` for no deadline.
  func setDeadline(of connection: HTTPConnection, after time: Duration?) {
    connection.deadline = time.map { EventLoop.now().advanced(by: $0) }
    if let deadline = connection.deadline { arm(at: deadline) }
  }

  // MARK: - Library callbacks

  private static func server(_ context: UnsafeMutableRawPointer?) -> HTTPServer? {
    guard let context = unsafe context else { return nil }
    return unsafe Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
  }

  private static func connection(_ pointer: OpaquePointer?) -> HTTPConnection? {
    guard let pointer = unsafe pointer,
      let context = unsafe settle_http_socket_context(pointer)
    else { return nil }
    return unsafe Unmanaged<HTTPConnection>.fromOpaque(context).takeUnretainedValue()
  }

  /// Handles the start or end of a connection, which owns its object.
  ///
  /// From version 1.0 on the library begins to serve a connection when it runs next, before that
  /// when it is given one.
  private static func changed(
    _ context: UnsafeMutableRawPointer?,
    _ pointer: OpaquePointer?,
    _ place: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ code: MHD_ConnectionNotificationCode
  ) {
    guard let server = unsafe server(context), let place = unsafe place else { return }
    if code == .CONNECTION_NOTIFY_STARTED {
      guard let pointer = unsafe pointer,
        let fresh = unsafe server.starting.removeValue(forKey: settle_http_descriptor(pointer))
      else { return }
      unsafe place.pointee = Unmanaged.passRetained(fresh).toOpaque()
      server.connections[ObjectIdentifier(fresh)] = fresh
      fresh.waitForClient(within: server.limits.headTime)
      fresh.watchHangUp()
    } else if let object = unsafe place.pointee {
      let connection = unsafe Unmanaged<HTTPConnection>.fromOpaque(object).takeRetainedValue()
      unsafe place.pointee = nil
      connection.ended()
      server.connections[ObjectIdentifier(connection)] = nil
    }
  }

  /// Handles the first line of a request.
  private static func begin(
    _ context: UnsafeMutableRawPointer?,
    _ target: UnsafePointer<CChar>?,
    _ pointer: OpaquePointer?
  ) {
    guard let connection = unsafe connection(pointer), let pointer = unsafe pointer,
      let target = unsafe target
    else { return }
    let exchange = unsafe HTTPExchange(
      connection: connection,
      pointer: pointer,
      target: String(cString: target)
    )
    connection.exchange = exchange
    connection.idleSince = nil
    if let server = connection.server { connection.waitForClient(within: server.limits.headTime) }
  }

  /// Handles a complete head, a part or the end of the body, or a resumed connection.
  private static func handle(
    _ context: UnsafeMutableRawPointer?,
    _ pointer: OpaquePointer?,
    _ method: UnsafePointer<CChar>?,
    _ bytes: UnsafePointer<CChar>?,
    _ count: UnsafeMutablePointer<Int>?
  ) -> MHD_Result {
    guard let exchange = unsafe connection(pointer)?.exchange, let method = unsafe method else {
      return .NO
    }
    let available = unsafe count?.pointee ?? 0
    guard let bytes = unsafe bytes, available > 0 else {
      return exchange.handle(method: unsafe String(cString: method))
    }
    let buffer = unsafe UnsafeBufferPointer(
      start: UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self),
      count: available
    )
    exchange.receive(unsafe buffer.span)
    unsafe count?.pointee = 0
    return exchange.isLost ? .NO : .YES
  }

  private static func completed(
    _ pointer: OpaquePointer?,
    _ code: MHD_RequestTerminationCode
  ) {
    guard let connection = unsafe connection(pointer), let exchange = connection.exchange else {
      return
    }
    connection.exchange = nil
    connection.idleSince = EventLoop.now()
    connection.stopWaitingForClient()
    exchange.ended(isTooSlow: code == .REQUEST_TERMINATED_TIMEOUT_REACHED)
  }
}

/// The handler of requests.
package protocol HTTPService: AnyObject {
  /// Called with the head of a request: respond at once to refuse it, or later in ``complete(_:)``.
  ///
  /// To receive the body in parts, set ``HTTPExchange/onBody``.
  func begin(_ exchange: HTTPExchange)

  /// Called with the complete request; respond now or later.
  func complete(_ exchange: HTTPExchange)

  /// Called when a client is refused before its request.
  func connectionRefused(reason: String, at now: Moment)
}

/// The address that has the most connections that wait for their client.
struct StalledConnections {
  /// How many connections of that address wait.
  private(set) var count = 0
  /// The one among them that has waited for longest.
  private(set) var oldest: HTTPConnection?

  /// Where several addresses have equally many, the one that has waited for longest counts.
  init(_ connections: some Sequence<HTTPConnection>) {
    var crowds: [String: (count: Int, since: Moment, oldest: HTTPConnection)] = [:]
    for connection in connections {
      guard let since = connection.stalledSince else { continue }
      guard let crowd = crowds[connection.peer] else {
        crowds[connection.peer] = (1, since, connection)
        continue
      }
      let isOlder = since < crowd.since
      crowds[connection.peer] = (
        crowd.count + 1, isOlder ? since : crowd.since, isOlder ? connection : crowd.oldest
      )
    }
    let largest = crowds.values.max { ($0.count, $1.since) < ($1.count, $0.since) }
    count = largest?.count ?? 0
    oldest = largest?.oldest
  }
}
