// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
package import Operations

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
  /// The file of libnats.
  package var library = "libnats.so.3.4"

  package init(servers: [String], name: String) {
    self.servers = servers
    self.name = name
  }
}

/// Why there is no connection at all.
package struct NATSProblem: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}
