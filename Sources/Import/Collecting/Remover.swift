// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import LastOut
package import MQTT
package import Operations

/// Removes retained messages from a broker, unless a gateway would pass that on.
package final class Remover {
  /// How it ended.
  package enum Outcome: Hashable, Sendable {
    case removed
    /// A gateway still carries announcements: it would remove the entities from Home Assistant.
    case isCarried
    case failed(String)
  }

  private let loop: EventLoop
  private let client: MQTTClient
  /// An announcement that nobody has, and where a gateway would carry it.
  private let probe: (topic: String, carried: String)
  private let wait: Duration
  private var topics: ArraySlice<String>
  private var unanswered = 0
  private var hasWaited = false
  private var timer: LoopTimer?
  private var deadline: LoopTimer?
  private var outcome: Outcome?

  /// Removes the retained messages of `topics`, unless a gateway carries `probe`, an announcement
  /// that does not exist, within `wait`.
  ///
  /// - Throws: ``OperationsError`` when the client or a timer cannot be created.
  package init(
    _ configuration: MQTTConfiguration,
    topics: [String],
    probe: (topic: String, carried: String),
    wait: Duration,
    timeout: Duration,
    loop: EventLoop,
    log: Logger
  ) throws(OperationsError) {
    self.loop = loop
    self.topics = topics[...]
    self.probe = probe
    self.wait = wait
    client = try MQTTClient(configuration: configuration, loop: loop, log: log)
    timer = try loop.makeTimer(named: "probe") { [unowned self] in
      hasWaited = true
      publish()
    }
    deadline = try loop.makeTimer(named: "timeout") { [unowned self] in
      end(.failed("it took longer than --timeout"))
    }
    deadline?.arm(at: EventLoop.now().advanced(by: timeout))
    client.onState = { [unowned self] state in changed(state) }
    client.onMessage = { [unowned self] (_, _, _) in
      if !hasWaited { end(.isCarried) }
    }
    client.onOutcome = { [unowned self] (_, outcome) in answered(outcome) }
  }

  /// Runs the loop until everything is removed, or cannot be.
  package func remove() -> Outcome {
    client.subscribe([Subscription(filter: probe.carried, wantsRetained: false)])
    client.start()
    loop.run()
    return outcome ?? .failed("the loop ended")
  }

  private func changed(_ state: MQTTClient.State) {
    switch state {
    case .connected:
      sendNothing(to: probe.topic, retain: false)
      timer?.arm(at: EventLoop.now().advanced(by: wait))
    case .waiting(_, let reason): if outcome == nil { end(.failed(reason)) }
    case .idle: loop.stop()
    case .connecting: break
    }
  }

  private func sendNothing(to topic: String, retain: Bool) {
    let token = MQTTClient.Token(number: 0)
    let isAccepted = client.publish(topic: topic, payload: [], retain: retain, token: token)
    if isAccepted { unanswered += 1 }
  }

  private func publish() {
    guard outcome == nil, hasWaited else { return }
    while client.canPublish, let topic = topics.popFirst() { sendNothing(to: topic, retain: true) }
    if topics.isEmpty, unanswered == 0 { end(.removed) }
  }

  private func answered(_ outcome: PublishOutcome) {
    unanswered -= 1
    switch outcome {
    case .acknowledged: publish()
    case .refused(let reason): end(.failed(reason))
    case .lost: end(.failed("the connection ended"))
    }
  }

  private func end(_ outcome: Outcome) {
    guard self.outcome == nil else { return }
    self.outcome = outcome
    timer?.cancel()
    deadline?.cancel()
    client.close()
    if case .idle = client.state { loop.stop() }
  }
}
