// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// One connection to the gateway's control socket; blocks, and belongs to one thread.
///
/// Several requests may be in flight at once; their `id` identifies the replies.
package struct ControlClient: ~Copyable {
  /// The longest reply: `get` answers every key in one line.
  private static let replyLimit = 64 * 1024 * 1024
  /// How long connecting or sending may take, in seconds.
  private static let sendTimeout = 5

  private let path: String
  /// For `poll`; readable when replies have arrived or the gateway has disconnected.
  package let descriptor: Int32
  private var framer = LineFramer(limit: replyLimit)

  /// Connects.
  ///
  /// - Throws: ``ClientError/notRunning(path:)`` if no gateway listens, or another reason.
  package init(path: String) throws(ClientError) {
    guard path.utf8.count <= SocketPath.longest else { throw .pathTooLong(path) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Self.failure("socket", path) }
    guard Self.connect(descriptor, to: path) else {
      let failure = Self.connectFailure(path)
      close(descriptor)
      throw failure
    }
    self.path = path
    self.descriptor = descriptor
  }

  /// Takes ownership of a connected descriptor.
  package init(connected descriptor: Int32) {
    path = "socket"
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// The user who runs the gateway; `nil` where the kernel does not know.
  package var peer: UInt32? {
    // A process, a user and a group.
    var credentials: [UInt32] = [0, 0, 0]
    var size = socklen_t(MemoryLayout<UInt32>.size * credentials.count)
    let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
    return result == 0 && size == 12 ? credentials[1] : nil
  }

  /// Sends one request.
  package func send(_ request: ControlRequest) throws(ClientError) {
    let bytes = request.line + [0x0A]
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes[sent...].withUnsafeBytes { buffer in
        // A closed connection is an error to report, not a signal that ends the process.
        unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
      }
      if count > 0 { sent += count }
      if count >= 0 || errno == EINTR { continue }
      switch errno {
      case EAGAIN: throw .timedOut(after: .seconds(Self.sendTimeout))
      case EPIPE, ECONNRESET: throw .closed
      default: throw Self.failure("send", path)
      }
    }
  }

  /// Waits for the next reply, without limit if there is no deadline.
  package mutating func next(by deadline: Deadline?) throws(ClientError) -> ControlReply {
    while true {
      if let (reply, _) = try nextReceived() { return reply }
      try receive(by: deadline)
    }
  }

  /// Sends as much as the kernel accepts without blocking; returns the number of bytes.
  func sendAvailable(_ bytes: [UInt8]) throws(ClientError) -> Int {
    let count = unsafe bytes.withUnsafeBytes { buffer in
      unsafe Glibc.send(
        descriptor,
        buffer.baseAddress,
        buffer.count,
        Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
      )
    }
    if count >= 0 { return count }
    switch errno {
    case EAGAIN, EINTR: return 0
    case EPIPE, ECONNRESET: throw .closed
    default: throw Self.failure("send", path)
    }
  }

  /// The next reply that has already arrived, and its line.
  mutating func nextReceived() throws(ClientError) -> (ControlReply, ArraySlice<UInt8>)? {
    guard let output = framer.next() else { return nil }
    switch output {
    case .line(let bytes, _):
      if let reply = ControlReply(line: bytes.span) { return (reply, bytes) }
      throw .unreadable(String(decoding: bytes.prefix(100), as: UTF8.self))
    case .tooLong: throw .unreadable("a line beyond \(Self.replyLimit) bytes")
    }
  }

  /// The replies that have arrived, without waiting for more; other lines are skipped.
  ///
  /// Call it when ``descriptor`` is readable, and again then: one call reads a bounded amount.
  package mutating func available() throws(ClientError) -> [ControlReply] {
    try receive(flags: Int32(MSG_DONTWAIT))
    var replies: [ControlReply] = []
    while let output = framer.next() {
      if case .line(let bytes, _) = output, let reply = ControlReply(line: bytes.span) {
        replies.append(reply)
      }
    }
    return replies
  }

  private mutating func receive(by deadline: Deadline?) throws(ClientError) {
    try wait(by: deadline)
    try receive()
  }

  /// Receives bytes; waits if none have arrived.
  mutating func receive() throws(ClientError) { try receive(flags: 0) }

  private mutating func receive(flags: Int32) throws(ClientError) {
    var count = 0
    // Not zero-filled: most replies are short, and every touched page costs time.
    let chunk = unsafe [UInt8](unsafeUninitializedCapacity: 16 * 1024) { buffer, length in
      count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, flags)
      length = max(0, count)
    }
    if count > 0 {
      framer.append(chunk.span)
    } else if count == 0 || errno == ECONNRESET {
      throw .closed
    } else if errno != EINTR, errno != EAGAIN {
      throw Self.failure("recv", path)
    }
  }

  private func wait(by deadline: Deadline?) throws(ClientError) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let ready = unsafe poll(&entry, 1, deadline?.remainingMilliseconds ?? -1)
      if ready > 0 { return }
      if ready == 0 { throw .timedOut(after: deadline?.duration ?? .zero) }
      if errno != EINTR { throw Self.failure("poll", path) }
    }
  }

  /// Whether the socket at `path` accepted the connection; waits for a full backlog.
  private static func connect(_ descriptor: Int32, to path: String) -> Bool {
    var timeout = timeval(tv_sec: sendTimeout, tv_usec: 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    unsafe setsockopt(
      descriptor,
      SOL_SOCKET,
      SO_SNDTIMEO,
      &timeout,
      socklen_t(MemoryLayout<timeval>.size)
    )
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(descriptor, $0, size) == 0
      }
    }
  }

  private static func connectFailure(_ path: String) -> ClientError {
    switch errno {
    case ENOENT, ECONNREFUSED, ENOTDIR: .notRunning(path: path)
    case EACCES: .denied(path: path, group: SocketOwner.group(of: path))
    default: failure("connect", path)
    }
  }

  static func failure(_ call: String, _ path: String) -> ClientError {
    .system(call: call, path: path, reason: unsafe String(cString: strerror(errno)))
  }
}
