// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut
package import MQTT
package import Operations

/// Collects the retained messages of some topics from a broker until it sends no more.
package final class Collector {
  /// How a collection ended.
  package enum Outcome: Hashable, Sendable {
    /// The broker has sent no message for the quiet period.
    case complete
    /// The timeout passed while messages arrived, or before the broker answered.
    case timedOut(isConnected: Bool)
    /// The connection failed, with the reason.
    case failed(String)
    /// The limits are exceeded; ``announcements`` has the messages up to there.
    case tooMuch
  }

  package static let maximumMessages = 100_000
  package static let maximumBytes = 128 << 20

  package private(set) var announcements: [Announcement] = []
  /// Called when the broker accepts the connection.
  package var onConnected: (() -> Void)?

  /// The URL of the connected broker; without a connection those of all.
  package var endpoint: String { client.endpoint }

  /// What to ask once connected, and after messages; `nil` to publish nothing.
  package var questions: ShellyQuestions?

  private let loop: EventLoop
  private let client: MQTTClient
  private let filters: [String]
  /// How long no message may arrive before the collection is complete.
  private let quiet: Duration
  private let deadline: Moment
  private var timer: LoopTimer?
  private var bytes = 0
  private var isConnected = false
  private var lastMessage: Moment?
  private var outcome: Outcome?

  /// Creates the client, which connects in ``collect()``.
  ///
  /// - Throws: ``OperationsError`` when the client or the timer cannot be created.
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
    timer = try loop.makeTimer(named: "collecting") { [unowned self] in checkQuiet() }
    client.onState = { [unowned self] state in changed(state) }
    client.onMessage = { [unowned self] (topic, payload, _) in receive(topic, payload) }
  }

  /// Runs the loop until the collection is complete, fails or times out.
  package func collect() -> Outcome {
    client.subscribe(filters.map { Subscription(filter: $0, wantsRetained: true) })
    client.start()
    timer?.arm(at: deadline)
    loop.run()
    return outcome ?? .failed("the loop ended")
  }

  private func changed(_ state: MQTTClient.State) {
    switch state {
    case .connected:
      guard !isConnected else { return }
      isConnected = true
      lastMessage = EventLoop.now()
      arm()
      if let questions { ask([questions.first]) }
      onConnected?()
    case .waiting(_, let reason):
      // A broker that does not answer is asked again until the timeout.
      let isSilent = !isConnected && client.trouble?.cause == .silent
      if outcome == nil, !isSilent { end(.failed(reason)) }
    case .idle: loop.stop()
    case .connecting: break
    }
  }

  private func receive(_ topic: Span<UInt8>, _ payload: Span<UInt8>) {
    guard outcome == nil else { return }
    lastMessage = EventLoop.now()
    bytes += topic.count + payload.count
    guard announcements.count < Self.maximumMessages, bytes <= Self.maximumBytes else {
      end(.tooMuch)
      return
    }
    let name = unsafe topic.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    let copy = unsafe payload.withUnsafeBufferPointer { unsafe Array($0) }
    // A topic can have several messages; readers use the last one.
    let announcement = Announcement(topic: name, payload: copy)
    announcements.append(announcement)
    if let questions = questions?.questions(after: announcement) { ask(questions) }
  }

  private func ask(_ questions: [ShellyQuestions.Question]) {
    for question in questions {
      _ = client.publish(topic: question.topic, payload: question.payload, token: .init(number: 0))
    }
  }

  /// Ends the collection after the quiet period; messages since the timer was armed extend it.
  private func checkQuiet() {
    guard outcome == nil else { return }
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

  private func end(_ outcome: Outcome) {
    self.outcome = outcome
    timer?.cancel()
    timer = nil
    client.close()
    if case .idle = client.state { loop.stop() }
  }
}
