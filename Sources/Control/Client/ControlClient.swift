// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Values

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
    var rest = bytes[...]
    while !rest.isEmpty {
      guard let count = try send(rest, flags: 0) else {
        throw .timedOut(after: .seconds(Self.sendTimeout))
      }
      rest.removeFirst(count)
    }
  }

  /// Waits for the next reply, without limit if there is no deadline.
  package mutating func next(by deadline: Deadline?) throws(ClientError) -> ControlReply {
    while true {
      if let (reply, _) = try nextReceived() { return reply }
      try wait(by: deadline)
      try receive()
    }
  }

  /// Sends as much as the kernel accepts without blocking; returns the number of bytes.
  func sendAvailable(_ bytes: [UInt8]) throws(ClientError) -> Int {
    try send(bytes[...], flags: Int32(MSG_DONTWAIT)) ?? 0
  }

  /// Sends bytes; returns how many the kernel accepted, or `nil` if it accepted none in time.
  private func send(_ bytes: ArraySlice<UInt8>, flags: Int32) throws(ClientError) -> Int? {
    let count = unsafe bytes.withUnsafeBytes { buffer in
      // A closed connection is an error to report, not a signal that ends the process.
      unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL) | flags)
    }
    if count >= 0 { return count }
    switch errno {
    case EINTR: return 0
    case EAGAIN: return nil
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

  /// Receives bytes; waits if none have arrived, unless `flags` forbid it.
  mutating func receive(flags: Int32 = 0) throws(ClientError) {
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

/// A point in time on the monotonic clock.
package struct Deadline: Sendable {
  /// The duration from its creation.
  package let duration: Duration
  private let nanoseconds: Int64

  package init(after duration: Duration) {
    self.duration = duration
    let (seconds, attoseconds) = duration.components
    nanoseconds = Self.now + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// The remaining time for `poll`, rounded up to milliseconds; 0 once it has passed.
  package var remainingMilliseconds: Int32 {
    let left = nanoseconds - Self.now
    return left <= 0 ? 0 : Int32(clamping: (left + 999_999) / 1_000_000)
  }

  private static var now: Int64 {
    var time = timespec()
    guard unsafe clock_gettime(CLOCK_MONOTONIC, &time) == 0 else {
      preconditionFailure("The monotonic clock cannot be read.")
    }
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// Finds the group that owns a socket, for the message when permission is denied.
package enum SocketOwner {
  /// The name, or else the number, of the group that owns the socket, or the folder that hides it.
  package static func group(of path: String) -> String? {
    var info = stat()
    if unsafe stat(path, &info) != 0 {
      let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      guard unsafe stat(folder.joined(separator: "/"), &info) == 0 else { return nil }
    }
    return name(ofGroup: info.st_gid, in: groups()) ?? "\(info.st_gid)"
  }

  /// Finds a group in the text of `/etc/group`.
  ///
  /// The C library's own look-up needs shared libraries at run time, which a static program does
  /// not have.
  package static func name(ofGroup number: UInt32, in text: String) -> String? {
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: ":", omittingEmptySubsequences: false)
      if fields.count >= 3, UInt32(fields[2]) == number { return String(fields[0]) }
    }
    return nil
  }

  private static func groups() -> String {
    let descriptor = unsafe open("/etc/group", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 256 * 1024)
    let count = unsafe bytes.withUnsafeMutableBytes { buffer in
      unsafe read(descriptor, buffer.baseAddress, buffer.count)
    }
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}

/// Why a request to the gateway failed, in words for a terminal.
package enum ClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// None of the usual sockets exists.
  case noSocket(lookedAt: [String])
  /// The socket does not exist, or no gateway listens.
  case notRunning(path: String)
  /// The file mode denies access; `group` has access, if it is known.
  case denied(path: String, group: String?)
  case pathTooLong(String)
  /// A system call failed for another reason.
  case system(call: String, path: String, reason: String)
  /// The gateway closed the connection.
  case closed
  /// No reply arrived in time.
  case timedOut(after: Duration)
  /// A received line is not a reply.
  case unreadable(String)

  package var description: String {
    switch self {
    case .noSocket(let paths):
      #"no gateway is running: there is no \#(Self.list(paths)); start it with "settle run"; if its"#
        + #" settings have "socket:", name that path with --socket or SETTLE_SOCKET"#
    case .notRunning(let path): #"no gateway answers at \#(path); start it with "settle run""#
    case .denied(let path, .some(let group)):
      #"permission denied at \#(path); members of the group "\#(group)" may use it"#
    case .denied(let path, .none): "permission denied at \(path)"
    case .pathTooLong(let path):
      "a socket's path has at most \(SocketPath.longest) bytes; found \(path.utf8.count)"
    case .system(let call, let path, let reason): "\(call) \(path): \(reason)"
    case .closed: "the gateway closed the connection"
    case .timedOut(let duration): "no answer within \(DurationText.text(duration))"
    case .unreadable(let line): #"not a reply: "\#(Excerpt.of(line))""#
    }
  }

  /// `a, b or c`.
  private static func list(_ paths: [String]) -> String {
    guard let last = paths.last, paths.count > 1 else { return paths.joined() }
    return paths.dropLast().joined(separator: ", ") + " or " + last
  }
}

/// The path of the control socket.
package enum SocketPath {
  /// The longest path that the kernel accepts, in bytes.
  package static let longest = 107

  /// The system-wide path.
  package static let system = "/run/settle/settle.sock"

  /// What the help of an option says that names the socket.
  package static let help =
    "The gateway's control socket; default: SETTLE_SOCKET, then the first that exists of"
    + " settle.sock in $XDG_RUNTIME_DIR, /run/user/UID and /run/settle."

  /// The socket to connect to: `--socket`, then `SETTLE_SOCKET`, then the first that exists of the
  /// user's and the system's.
  package static func find(
    named: String?,
    environment: (String) -> String? = environment,
    user: UInt32 = currentUser
  ) throws(ClientError) -> String {
    if let path = named ?? nonEmpty(environment("SETTLE_SOCKET")) { return path }
    let candidates = usual(environment: environment, user: user)
    // An unreadable folder hides the socket; connecting reports it.
    guard let path = candidates.first(where: { unsafe access($0, F_OK) == 0 || errno == EACCES })
    else {
      throw .noSocket(lookedAt: candidates)
    }
    return path
  }

  /// The default paths, in order of preference.
  ///
  /// The user's folder comes from `XDG_RUNTIME_DIR`. Cron and services do not have that variable,
  /// so its usual value is among the paths too.
  package static func usual(
    environment: (String) -> String? = environment,
    user: UInt32 = currentUser
  ) -> [String] {
    let standard = folder(ofUser: user)
    let named = nonEmpty(environment("XDG_RUNTIME_DIR")) ?? standard
    let folders = named == standard ? [standard] : [named, standard]
    return folders.map { "\($0)/settle.sock" } + [system]
  }

  /// Where a gateway creates its socket if nothing names one: in the user's folder for files of
  /// running programs, or in the system's where the user has none.
  package static func standard(
    environment: (String) -> String? = environment,
    user: UInt32 = currentUser
  ) -> String {
    if let folder = nonEmpty(environment("XDG_RUNTIME_DIR")) { return "\(folder)/settle.sock" }
    let folder = folder(ofUser: user)
    // Root's services belong to the system.
    guard user != 0, unsafe access(folder, W_OK) == 0 else { return system }
    return "\(folder)/settle.sock"
  }

  private static func folder(ofUser user: UInt32) -> String { "/run/user/\(user)" }

  /// The user who runs this process.
  package static var currentUser: UInt32 { getuid() }

  /// The value of an environment variable.
  package static func environment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  private static func nonEmpty(_ text: String?) -> String? {
    text.flatMap { $0.isEmpty ? nil : $0 }
  }
}
