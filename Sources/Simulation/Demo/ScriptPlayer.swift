// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices
internal import JSON
package import LastOut
import MQTT
package import Operations
import Values

/// Plays a script over MQTT: one message per change, at its time.
package final class ScriptPlayer {
  /// Called when an act starts.
  package var onAct: ((DemoScript.Act) -> Void)?
  /// Called right before a change of a key is published.
  package var onChange: ((KeyIndex, Moment) -> Void)?

  private let script: DemoScript
  private let speed: Double
  private let registry: Registry
  private let link: DemoLink
  private var timer: LoopTimer?
  private var start = Moment.zero
  private var nextAct = 0
  private var nextChange = 0

  /// - Parameters:
  ///   - script: The script to play.
  ///   - speed: The factor by which it plays faster; policies do not change.
  ///   - registry: The keys.
  ///   - link: The connection that publishes changes.
  ///   - loop: The loop whose timer is used.
  /// - Throws: ``OperationsError`` when the timer cannot be created.
  package init(
    _ script: DemoScript,
    speed: Double,
    registry: Registry,
    link: DemoLink,
    loop: EventLoop
  ) throws(OperationsError) {
    self.script = script
    self.speed = speed
    self.registry = registry
    self.link = link
    timer = try loop.makeTimer { [weak self] in self?.play() }
  }

  /// Whether everything has been played.
  package var isDone: Bool { nextChange == script.changes.count }

  /// Starts to play; `start` is the time zero of the script.
  package func begin(at start: Moment) {
    self.start = start
    play()
  }

  private func moment(_ milliseconds: Double) -> Moment {
    start.advanced(by: .nanoseconds(Int64(milliseconds * 1_000_000 / speed)))
  }

  private func play() {
    let now = EventLoop.now()
    while nextAct < script.acts.count, moment(script.acts[nextAct].at) <= now {
      onAct?(script.acts[nextAct])
      nextAct += 1
    }
    while nextChange < script.changes.count, moment(script.changes[nextChange].at ?? 0) <= now {
      publish(script.changes[nextChange])
      nextChange += 1
    }
    let act = nextAct < script.acts.count ? moment(script.acts[nextAct].at) : nil
    let change = isDone ? nil : moment(script.changes[nextChange].at ?? 0)
    timer?.arm(at: [act, change].compactMap { $0 }.min())
  }

  /// Publishes several properties of a device in one message.
  private func publish(_ members: [JSONValue.Member], of request: ControlRequest) {
    let now = EventLoop.now()
    let keys = members.compactMap { try? registry.index(of: "\(request.key)/\($0.name)") }
    for key in keys { onChange?(key, now) }
    link.publish("settle/\(request.key)/set", JSONWriter.bytes(.object(members)))
    guard request.now else { return }
    for key in keys { link.publish("settle/\(registry[key].key)/flush", []) }
  }

  private func publish(_ request: ControlRequest) {
    if let members = request.deviceMembers { return publish(members, of: request) }
    for key in keys(of: request) {
      let now = EventLoop.now()
      let name = registry[key].key
      switch request.operation {
      case .set(let value):
        onChange?(key, now)
        let payload = JSONValue.object(["value": value, "source": "demo"])
        link.publish("settle/\(name)/set", JSONWriter.bytes(payload))
      case .step(let amount):
        onChange?(key, now)
        var payload: [UInt8] = []
        amount.json.appendBare(to: &payload)
        link.publish("settle/\(name)/step", payload)
      case .toggle:
        onChange?(key, now)
        link.publish("settle/\(name)/toggle", [])
      case .flush: link.publish("settle/\(name)/flush", [])
      case .cancel: link.publish("settle/\(name)/cancel", [])
      case .scene, .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices:
        preconditionFailure("A script has changes, flush and cancel only.")
      }
      if request.now { link.publish("settle/\(name)/flush", []) }
    }
  }

  private func keys(of request: ControlRequest) -> [KeyIndex] {
    if let key = try? registry.index(of: request.key) { return [key] }
    return registry.indices(matching: request.key)
  }
}

/// A connection to the demo's broker that queues what it cannot send immediately.
package final class DemoLink {
  /// Called for each message.
  package var onMessage: ((_ topic: String, _ payload: [UInt8]) -> Void)?
  /// Called once, when the broker has accepted the connection.
  package var onConnected: (() -> Void)?

  private let client: MQTTClient
  private var waiting: [DeviceMessage] = []
  private var lastToken: UInt64 = 0
  /// A publish may call back before it returns.
  private var isDraining = false

  /// Creates a connection to a broker on loopback, which ``start(subscribing:)`` opens.
  package init(name: String, port: Int, loop: EventLoop) throws(OperationsError) {
    var configuration = MQTTConfiguration(
      endpoint: .tcp(host: "127.0.0.1", port: port),
      clientID: "settle-demo-\(name)"
    )
    configuration.window = 1000
    client = try MQTTClient(configuration: configuration, loop: loop, log: .silent)
    client.onMessage = { [weak self] topic, payload, _ in
      guard let self, let onMessage else { return }
      let name = topic.indices.map { topic[$0] }
      onMessage(String(decoding: name, as: UTF8.self), payload.indices.map { payload[$0] })
    }
    client.onReady = { [weak self] in self?.drain() }
    client.onState = { [weak self] state in
      guard let self, case .connected = state else { return }
      onConnected?()
      onConnected = nil
      drain()
    }
  }

  package func start(subscribing filters: [String] = []) {
    client.subscribe(
      filters.map { Subscription(filter: $0, qos: 1, wantsRetained: false) }
    )
    client.start()
  }

  package func publish(_ topic: String, _ payload: [UInt8], retain: Bool = false) {
    waiting.append(DeviceMessage(topic: topic, payload: payload, retain: retain))
    drain()
  }

  private func drain() {
    guard !isDraining else { return }
    isDraining = true
    defer { isDraining = false }
    var sent = 0
    for message in waiting {
      guard client.canPublish else { break }
      lastToken += 1
      guard
        client.publish(
          topic: message.topic,
          payload: message.payload,
          qos: 0,
          retain: message.retain,
          token: MQTTClient.Token(number: lastToken)
        )
      else { break }
      sent += 1
    }
    waiting.removeFirst(sent)
  }
}
