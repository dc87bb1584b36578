// Settle
// SPDX-License-Identifier: Apache-2.0

import CNATS
import Glibc
import LastOut
package import Operations
import Synchronization

/// A connection to servers of NATS, which connects again by itself.
///
/// libnats has threads of its own: what they report waits in a queue until the event loop handles
/// it. It belongs to the loop's thread. Nothing waits for a server but connecting for the first
/// time, which has a thread of its own.
package final class NATSConnection {
  /// A message that has arrived.
  package struct Message: Sendable {
    package var subject: String
    package var reply: String?
    /// A server's answer without content, such as `503`: nobody listens.
    package var status: String?
    /// The sequence number of a consumer's last message, in its sign of life.
    package var lastConsumer: UInt64?
    package var bytes: [UInt8]
  }

  /// Called with each message.
  package var onMessage: ((Message) -> Void)?
  /// Called when the connection is made or lost; `problem` says why there is none.
  package var onChange: ((_ isUp: Bool, _ problem: String?) -> Void)?
  package private(set) var isConnected = false

  private let inbox: NATSInbox
  private let settings: NATSSettings
  private let subjects: [String]
  private var handle: NATSHandle?
  private var watch: IOWatch?
  private var timer: LoopTimer?
  private var isClosed = false

  /// - Parameters:
  ///   - settings: Servers and credentials.
  ///   - subjects: What is subscribed to.
  ///   - loop: Handles what arrives.
  /// - Throws: When libnats cannot be loaded, or the loop cannot be woken.
  package init(
    _ settings: NATSSettings,
    subjects: [String],
    loop: EventLoop
  ) throws(NATSProblem) {
    try NATSLibrary.load(settings.library)
    self.settings = settings
    self.subjects = subjects
    do throws(OperationsError) {
      let waker = try Waker()
      inbox = NATSInbox(waker)
      watch = try loop.watch(waker, named: "cluster engine") { [unowned self] in receive() }
      timer = try loop.makeTimer(named: "cluster engine") { [unowned self] in start() }
    } catch {
      throw NATSProblem("\(error)")
    }
  }

  deinit {
    watch?.cancel()
    close()
  }

  /// Begins to connect; it goes on until it succeeds.
  package func start() {
    guard handle == nil, !isClosed else { return }
    NATSConnecting.start(settings, subjects, inbox)
  }

  /// Closes the connection; nothing is reported afterwards.
  package func close() {
    guard !isClosed else { return }
    isClosed = true
    isConnected = false
    for case .opened(let opened) in inbox.close() { handle = opened }  // Nobody has it yet.
    guard let handle else { return }
    self.handle = nil
    handle.close()
    inbox.releaseFromLibrary()
  }

  /// When a stream stores a message.
  package struct Condition {
    /// The sequence number of the last message of its subject; 0: if there is none.
    package var lastSequence: UInt64
    /// No other message has it; the stream remembers it for its `duplicate_window`.
    package var id: String

    package init(lastSequence: UInt64, id: String) {
      self.lastSequence = lastSequence
      self.id = id
    }
  }

  /// Publishes a message; `false` without a connection.
  ///
  /// While libnats connects again nothing is handed to it: it would be sent long after its time.
  package func publish(
    _ bytes: [UInt8],
    to subject: String,
    reply: String? = nil,
    condition: Condition? = nil
  ) -> Bool {
    guard isConnected, let handle, bytes.count <= largest else { return false }
    return handle.publish(bytes, to: subject, reply: reply, condition: condition)
  }

  /// The largest payload of a message, in bytes.
  package private(set) var largest = 1 << 20

  /// The server's address; empty without a connection.
  package var server: String { handle?.server ?? "" }

  private func receive() {
    for event in inbox.dequeue() {
      guard !isClosed else { return }
      switch event {
      case .opened(let opened):
        handle = opened
        largest = opened.largest
      case .failed(let problem):
        onChange?(false, problem)
        timer?.arm(at: EventLoop.now().advanced(by: settings.retry))
      case .connected:
        isConnected = true
        onChange?(true, nil)
      case .disconnected(let reason):
        isConnected = false
        onChange?(false, reason.isEmpty ? "the connection was lost" : reason)
      case .message(let message): onMessage?(message)
      }
    }
  }
}

/// Who connects where.
package struct NATSSettings: Hashable, Sendable {
  package var servers: [String]
  /// The client's name, as the server shows it.
  package var name: String
  package var username: String?
  /// Never logged or described.
  package var password: String?
  package var credentialsFile: String?
  package var ca: String?
  package var certificate: String?
  package var key: String?
  /// The wait before another attempt where none has succeeded yet.
  package var retry: Duration = .seconds(1)
  /// The file of libnats; `nil`: the one that is installed.
  package var library: String?

  package init(servers: [String], name: String) {
    self.servers = servers
    self.name = name
  }
}

extension NATSSettings {
  /// A reason of libnats without the place in its sources, such as `(conn.c:1905)`, and with the
  /// settings to look at.
  func words(_ reason: String) -> String {
    var text = reason[...]
    if let start = reason.firstIndex(of: "("), reason[start...].prefix(20).contains(":") {
      text = reason[..<start]
      while text.hasSuffix(" ") || text.hasSuffix(":") { text.removeLast() }
    }
    // Such as "Authentication Violation", "Authorization Violation", and "Not Authorized".
    if text.hasPrefix("Auth") || text.hasPrefix("Not Auth") {
      return "the servers refuse the credentials (\(text)); see cluster.credentials_file, or"
        + " cluster.username and cluster.password_file"
    }
    if text.hasPrefix("Secure Connection") {
      return "the servers do not speak TLS: write nats:// instead of tls:// in cluster.nats"
    }
    return text.hasPrefix("SSL") ? tlsWords(text) : String(text)
  }

  /// libnats does not say what is wrong with TLS.
  private func tlsWords(_ text: Substring) -> String {
    guard servers.contains(where: { $0.hasPrefix("tls:") }) else {
      return "the servers want TLS (\(text)): write tls:// instead of nats:// in cluster.nats"
    }
    let files = [("ca", ca), ("cert", certificate), ("key", key)]
    for case (let name, let file?) in files where unsafe access(file, R_OK) != 0 {
      let reason = unsafe String(cString: strerror(errno))
      return "\(file), the file of cluster.\(name), cannot be read: \(reason)"
    }
    let authority = ca.map { "in \($0)" } ?? "in the system's store; see cluster.ca"
    return "TLS failed (\(text)): the servers' certificate must be valid today, for the names in"
      + " cluster.nats, and from an authority \(authority). The servers may want cluster.cert and"
      + " cluster.key too"
  }
}

/// Why there is no connection at all.
package struct NATSProblem: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

/// libnats, which is loaded only where a cluster is configured.
enum NATSLibrary {
  /// Loads the library, once for the process.
  static func load(_ file: String?) throws(NATSProblem) {
    var text = [CChar](repeating: 0, count: 512)
    guard unsafe !settle_nats_load(file, &text, Int32(text.count)) else { return }
    throw NATSProblem(
      "cluster: needs libnats (Debian 12: apt install libnats3.4, Debian 13: libnats3.10): \(String(terminated: text))"
    )
  }
}

/// The first connection, on a thread of its own: resolving names and connecting may block.
enum NATSConnecting {
  static func start(_ settings: NATSSettings, _ subjects: [String], _ inbox: NATSInbox) {
    do throws(OperationsError) {
      try WorkerThread { run(settings, subjects, inbox) }.detach()
    } catch {
      inbox.add(.failed("cannot start a thread for the connection"))
    }
  }

  private static func run(_ settings: NATSSettings, _ subjects: [String], _ inbox: NATSInbox) {
    var text = [CChar](repeating: 0, count: 512)
    var handlers = unsafe inbox.handlers
    let made = unsafe CStrings.with(settings) { pointer in
      unsafe settle_nats_connect(pointer, &handlers, &text, Int32(text.count))
    }
    guard let pointer = unsafe made else {
      inbox.releaseFromLibrary()
      inbox.add(.failed(String(terminated: text)))
      return
    }
    let handle = unsafe NATSHandle(pointer)
    for subject in subjects { _ = handle.subscribe(to: subject) }
    guard inbox.add(.opened(handle)) else {
      handle.close()
      inbox.releaseFromLibrary()
      return
    }
    inbox.add(.connected)
  }
}

/// Texts for C, valid as long as this object.
@safe private final class CStrings {
  private var copies: [UnsafeMutablePointer<CChar>] = unsafe []

  deinit {
    while let pointer = unsafe copies.popLast() { unsafe free(pointer) }
  }

  /// The text in C's form; null for none.
  func copy(_ text: String?) -> UnsafePointer<CChar>? {
    guard let text, let pointer = unsafe strdup(text) else { return nil }
    unsafe copies.append(pointer)
    return unsafe UnsafePointer(pointer)
  }

  static func with<Result>(
    _ settings: NATSSettings,
    _ body: (UnsafePointer<settle_nats_settings>) -> Result
  ) -> Result {
    let strings = CStrings()
    var servers = unsafe settings.servers.map { unsafe strings.copy($0) }
    return unsafe servers.withUnsafeMutableBufferPointer { buffer in
      guard let first = buffer.baseAddress else {
        preconditionFailure("A connection has a server.")
      }
      var raw = unsafe settle_nats_settings(
        servers: first,
        server_count: Int32(settings.servers.count),
        name: strings.copy(settings.name),
        user: strings.copy(settings.username),
        password: strings.copy(settings.password),
        credentials: strings.copy(settings.credentialsFile),
        ca: strings.copy(settings.ca),
        certificate: strings.copy(settings.certificate),
        key: strings.copy(settings.key),
        is_encrypted: settings.servers.contains { $0.hasPrefix("tls://") }
      )
      return withExtendedLifetime(strings) { unsafe body(&raw) }
    }
  }
}

extension String {
  /// The text that C wrote into a buffer, up to its zero.
  init(terminated buffer: [CChar]) {
    self.init(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// What threads of libnats have reported and the event loop has not handled.
final class NATSInbox: Sendable {
  enum Event: Sendable {
    case opened(NATSHandle)
    case failed(String)
    case connected
    case disconnected(String)
    case message(NATSConnection.Message)
  }

  private struct State: Sendable {
    var events: [Event] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let waker: Waker

  init(_ waker: Waker) { self.waker = waker }

  /// Adds an event; `false` when nobody wants it any more.
  @discardableResult
  func add(_ event: Event) -> Bool {
    let isOpen = state.withLock { state in
      if !state.isClosed { state.events.append(event) }
      return !state.isClosed
    }
    if isOpen { waker.wake() }
    return isOpen
  }

  /// Removes and returns what has arrived, in order.
  func dequeue() -> [Event] {
    state.withLock { exchange(&$0.events, with: []) }
  }

  /// Takes no more events, and returns those that were not handled.
  func close() -> [Event] {
    state.withLock { state in state.isClosed = true }
    return dequeue()
  }

  /// The functions that libnats calls; they hold this inbox until ``releaseFromLibrary()``.
  var handlers: settle_nats_handlers {
    unsafe settle_nats_handlers(
      owner: Unmanaged.passRetained(self).toOpaque(),
      connected: { owner in unsafe NATSInbox.of(owner).add(.connected) },
      disconnected: { owner, reason in
        let text = unsafe String(cString: reason)
        unsafe NATSInbox.of(owner).add(.disconnected(text))
      },
      message: { owner, subject, reply, status, last, data, size in
        var message = NATSConnection.Message(
          subject: unsafe String(cString: subject),
          bytes: unsafe Array(UnsafeRawBufferPointer(start: data, count: Int(size)))
        )
        if let reply = unsafe reply { message.reply = unsafe String(cString: reply) }
        if let status = unsafe status { message.status = unsafe String(cString: status) }
        if let last = unsafe last { message.lastConsumer = unsafe UInt64(String(cString: last)) }
        unsafe NATSInbox.of(owner).add(.message(message))
      }
    )
  }

  /// The connection is closed: libnats calls nothing any more.
  func releaseFromLibrary() { unsafe Unmanaged.passUnretained(self).release() }

  private static func of(_ owner: UnsafeMutableRawPointer) -> NATSInbox {
    unsafe Unmanaged<NATSInbox>.fromOpaque(owner).takeUnretainedValue()
  }
}

/// A connection of libnats.
///
/// `@unchecked`: any thread may use it, and it has one owner at a time.
@safe struct NATSHandle: @unchecked Sendable {
  private let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }

  func subscribe(to subject: String) -> Bool { unsafe settle_nats_subscribe(pointer, subject) }

  func publish(
    _ bytes: [UInt8],
    to subject: String,
    reply: String?,
    condition: NATSConnection.Condition?
  ) -> Bool {
    unsafe settle_nats_publish(
      pointer,
      subject,
      reply,
      (condition?.lastSequence).map(String.init),
      condition?.id,
      bytes,
      Int32(bytes.count)
    )
  }

  /// The largest payload of a message, in bytes.
  var largest: Int { unsafe Int(settle_nats_largest(pointer)) }

  /// The server's address; empty without a connection.
  var server: String {
    var text = [CChar](repeating: 0, count: 256)
    unsafe settle_nats_server(pointer, &text, Int32(text.count))
    return String(terminated: text)
  }

  /// Closes and frees it; waits for handlers that run.
  func close() { unsafe settle_nats_close(pointer) }
}
