// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import MQTT
import Operations
import Synchronization
import TestBroker
import Testing

/// An event loop, one client on it, and an owner that keeps the newest value of each topic until it
/// is acknowledged, as the gateway does.
final class Harness {
  let loop: EventLoop
  let client: MQTTClient
  /// Lines the client logged.
  let log = LogLines()
  var states: [MQTTClient.State] = []
  var outcomes: [(token: MQTTClient.Token, outcome: PublishOutcome)] = []
  var received: [Received] = []
  var highestUnacknowledged = 0
  /// Called for each message, inside the library's callback.
  var onMessage: ((Received) -> Void)?

  /// The newest value of each topic that is not acknowledged, and whether it is in flight.
  private var wanted: [String: (payload: String, token: MQTTClient.Token?)] = [:]
  private var order: [String] = []
  private var topics: [MQTTClient.Token: (topic: String, payload: String)] = [:]
  private var nextToken = MQTTClient.Token(number: 1)
  private let guardTimer: LoopTimer
  private var condition: (() -> Bool)?

  struct Received: Hashable {
    var topic: String
    var payload: [UInt8]
    var retained: Bool
    var responseTopic: String?
    var correlationData: [UInt8]?
    var text: String { String(decoding: payload, as: UTF8.self) }
  }

  /// With `addresses`, the broker's host has these instead of those that the system finds.
  init(_ configuration: MQTTConfiguration, addresses: [String]? = nil) throws {
    let loop = try EventLoop()
    self.loop = loop
    guardTimer = try loop.makeTimer { loop.stop() }
    let lines = log
    client = try MQTTClient(
      configuration: configuration,
      loop: loop,
      log: Logger(level: .debug) { lines.add($0) }
    ) { host throws(UnresolvedName) in
      if let addresses { addresses } else { try HostAddresses.resolve(host) }
    }
    client.onState = { [unowned self] in
      states.append($0)
      check()
    }
    client.onReady = { [unowned self] in sendWanted() }
    client.onOutcome = { [unowned self] in took($0, $1) }
    client.onMessage = { [unowned self] topic, payload, message in
      let message = Received(
        topic: String(decoding: (0..<topic.count).map { topic[$0] }, as: UTF8.self),
        payload: (0..<payload.count).map { payload[$0] },
        retained: message.flags.retained,
        responseTopic: message.responseTopic,
        correlationData: message.correlationData
      )
      received.append(message)
      onMessage?(message)
      check()
    }
  }

  /// Runs the loop until `condition` holds, checked after each event; `false` if it takes too long.
  func run(within limit: Duration = .patience, until condition: @escaping () -> Bool) -> Bool {
    if condition() { return true }
    self.condition = condition
    defer {
      guardTimer.arm(at: nil)
      self.condition = nil
    }
    var wait = Wait(within: limit)
    // A client that tries again and again makes no progress.
    while let left = wait.remaining(outcomes.count + received.count) {
      guardTimer.arm(at: EventLoop.now().advanced(by: left))
      loop.run()
      if condition() { return true }
    }
    return false
  }

  /// Lets time pass on the loop.
  func run(for duration: Duration) {
    _ = run(within: duration) { false }
  }

  func connect(within limit: Duration = .patience) -> Bool {
    client.start()
    return run(within: limit) { [unowned self] in isConnected }
  }

  var isConnected: Bool {
    if case .connected = client.state { true } else { false }
  }

  /// Why the client waits, if it does.
  var waitingReason: String? {
    if case .waiting(_, let reason) = client.state { reason } else { nil }
  }

  /// Why the latest attempt failed.
  var lastReason: String? {
    states.reversed().lazy
      .compactMap { if case .waiting(_, let reason) = $0 { reason } else { nil } }
      .first
  }

  /// Wants `payload` to be the last word on `topic`.
  func set(_ topic: String, _ payload: String) {
    if wanted[topic] == nil { order.append(topic) }
    wanted[topic] = (payload, nil)
    sendWanted()
  }

  var isSettled: Bool { wanted.isEmpty }

  private func sendWanted() {
    for topic in order {
      guard client.canPublish else { return }
      guard let (payload, token) = wanted[topic], token == nil else { continue }
      let fresh = nextToken
      nextToken.number += 1
      wanted[topic]?.token = fresh
      topics[fresh] = (topic, payload)
      if !client.publish(topic: topic, payload: Array(payload.utf8), token: fresh) {
        topics[fresh] = nil
        wanted[topic]?.token = nil
      }
      highestUnacknowledged = max(highestUnacknowledged, client.unacknowledgedCount)
    }
  }

  private func took(_ token: MQTTClient.Token, _ outcome: PublishOutcome) {
    outcomes.append((token, outcome))
    if let (topic, _) = topics.removeValue(forKey: token), wanted[topic]?.token == token {
      switch outcome {
      case .acknowledged, .refused:
        wanted[topic] = nil
        order.removeAll { $0 == topic }
      case .lost: wanted[topic]?.token = nil
      }
    }
    check()
  }

  private func check() {
    if condition?() == true { loop.stop() }
  }
}

final class Box<Value> {
  var value: Value
  init(_ value: Value) { self.value = value }
}

/// Collects log lines from any thread.
final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
  func count(of text: String) -> Int { all.count { $0.contains(text) } }
}

extension MQTTConfiguration {
  /// A client of `broker` that reconnects quickly.
  static func local(
    _ broker: TestBroker,
    version: ProtocolVersion = .v5,
    clientID: String = "client-under-test"
  ) -> MQTTConfiguration {
    local(port: broker.port, version: version, clientID: clientID)
  }

  static func local(
    port: Int,
    version: ProtocolVersion = .v5,
    clientID: String = "client-under-test"
  ) -> MQTTConfiguration {
    var configuration = MQTTConfiguration(
      endpoint: .tcp(host: "127.0.0.1", port: port),
      clientID: clientID
    )
    configuration.version = version
    configuration.backoff = .milliseconds(50)...(.milliseconds(400))
    return configuration
  }
}
