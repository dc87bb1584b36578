// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut
package import MQTT
package import Operations

/// Collects the retained messages of some topics from a broker, until no more come.
package final class Collector {
  /// What came of it.
  package enum Ending: Hashable, Sendable {
    /// The broker sent what it had.
    case complete
    /// Time was up while messages were still coming, or before the broker answered.
    case timedOut(isConnected: Bool)
    /// There was no connection, and why.
    case failed(String)
    /// More was announced than is taken; what came until then is there.
    case tooMuch
  }

  /// What is taken in all.
  private static let mostMessages = 100_000
  private static let mostBytes = 128 << 20

  package private(set) var announcements: [Announcement] = []
  /// Called when the broker has taken the connection.
  package var onConnected: (() -> Void)?

  private let loop: EventLoop
  private let client: MQTTClient
  private let filters: [String]
  /// How long it must be quiet to be over.
  private let quiet: Duration
  private let deadline: Moment
  private var timer: LoopTimer?
  private var bytes = 0
  private var isConnected = false
  private var lastMessage: Moment?
  private var ending: Ending?

  /// Prepares a client; nothing happens before ``collect()``.
  package init(
    _ configuration: MQTTConfiguration,
    filters: [String],
    quiet: Duration,
    timeout: Duration,
    loop: EventLoop,
    log: Logger
  ) throws(OperationsError) {
    self.loop = loop
    self.filters = filters
    self.quiet = quiet
    deadline = EventLoop.now().advanced(by: timeout)
    client = try MQTTClient(configuration: configuration, loop: loop, log: log)
    timer = try loop.makeTimer(named: "collecting") { [unowned self] in look() }
    client.onState = { [unowned self] state in changed(state) }
    client.onMessage = { [unowned self] (topic, payload, _) in take(topic, payload) }
  }

  /// Runs the loop until all is there, or time is up.
  package func collect() -> Ending {
    client.subscribe(
      filters.map { MQTTClient.Subscription(filter: $0, qos: 1, wantsRetained: true) }
    )
    client.start()
    timer?.arm(at: deadline)
    loop.run()
    return ending ?? .failed("the loop ended")
  }

  private func changed(_ state: MQTTClient.State) {
    switch state {
    case .connected:
      guard !isConnected else { return }
      isConnected = true
      lastMessage = EventLoop.now()
      arm()
      onConnected?()
    case .waiting(_, let reason):
      if ending == nil { end(.failed(reason)) }
    case .idle: loop.stop()
    case .connecting: break
    }
  }

  private func take(_ topic: Span<UInt8>, _ payload: Span<UInt8>) {
    guard ending == nil else { return }
    lastMessage = EventLoop.now()
    bytes += topic.count + payload.count
    guard announcements.count < Self.mostMessages, bytes <= Self.mostBytes else {
      end(.tooMuch)
      return
    }
    let name = unsafe topic.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    let copy = unsafe payload.withUnsafeBufferPointer { unsafe Array($0) }
    // The newest counts: a message may come again while it is being collected.
    announcements.append(Announcement(topic: name, payload: copy))
  }

  /// Whether it has been quiet for long enough; a message since the timer was armed moves it on.
  private func look() {
    guard ending == nil else { return }
    let now = EventLoop.now()
    if let lastMessage, lastMessage.advanced(by: quiet) <= now {
      end(.complete)
    } else if deadline <= now {
      end(.timedOut(isConnected: isConnected))
    } else {
      arm()
    }
  }

  private func arm() {
    let over = lastMessage?.advanced(by: quiet) ?? deadline
    timer?.arm(at: min(over, deadline))
  }

  private func end(_ ending: Ending) {
    self.ending = ending
    timer?.cancel()
    timer = nil
    client.close()
    if case .idle = client.state { loop.stop() }
  }
}
