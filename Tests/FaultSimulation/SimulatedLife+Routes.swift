// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import LastOut
import LastOutTesting
import Routing

/// Messages that routes carry from one topic, or broker, to another.
extension SimulatedLife {
  /// Publishes on a topic that a route matches, or connects or disconnects the second broker.
  mutating func routedMessage() {
    if random.chance(5) { return cutFar() }
    wake()
    guard breach == nil else { return }
    let number = seen.routed + 1
    let topic = House.routedTopics[random.below(House.routedTopics.count)]
    let name = Array(topic.name.utf8)
    let payload = Array("\(number)".utf8)
    seen.routed = number
    if isTraced { note("\(topic.name) carries \(number)") }
    let keys = core.routeOutputs(of: name.span, from: topic.broker)
    let before = core.rejections.total(.overflow)
    // Some messages have passed this gateway before.
    let isLoop = random.chance(10)
    let isOpen = !core.isShuttingDown
    core.route(
      payload.span,
      document: nil,
      for: keys,
      topic: name.span,
      retained: false,
      trail: isLoop ? "there here" : random.chance(20) ? "there" : "",
      mark: "here",
      at: now
    )
    if isOpen, !isLoop, core.rejections.total(.overflow) == before {
      routes.accepted(number, on: topic.output, isDebounced: topic.isDebounced, at: now)
    }
  }

  /// Handles the reply to a routed message, or its loss.
  mutating func answerRoute(_ number: UInt64, _ outcome: RouteMachine.Outcome) {
    routes.answered(number, outcome)
    core.routeFinished(number, outcome)
  }

  private mutating func cutFar() {
    guard world.isFarConnected else { return }
    if isTraced { note("the second broker is gone") }
    world.isFarConnected = false
    let delay = random.chance(70) ? random.within(100...3000) : random.within(3000...70_000)
    agenda.plan(.farReconnection, at: now.advanced(by: .milliseconds(delay)))
  }
}

/// The ledger of routed messages: numbered payloads in, numbered payloads out.
struct RouteLedger {
  private struct Output {
    let isDebounced: Bool
    /// Accepted and not forwarded yet, the oldest first.
    var waiting: [(number: Int, at: Moment)] = []
    /// Forwarded and not answered.
    var inFlight: (flight: UInt64, number: Int)?
    /// The newest forwarded message, and whether the broker received it.
    var newest = 0
    /// The last message was lost, so that it is forwarded again.
    var lost: Int?
  }

  let ttl: Duration
  private var outputs: [String: Output] = [:]
  private var isClosed = false

  init(ttl: Duration) { self.ttl = ttl }

  mutating func accepted(_ number: Int, on topic: String, isDebounced: Bool, at now: Moment) {
    outputs[topic, default: Output(isDebounced: isDebounced)].waiting.append((number, now))
  }

  /// Records a forwarded message; returns the violated rule, if any.
  mutating func forwarded(
    _ publish: RouteMachine.Publish,
    to broker: Int,
    at now: Moment
  ) -> String? {
    guard var output = outputs[publish.topic],
      let number = Int(String(decoding: publish.payload, as: UTF8.self))
    else { return "\(publish.topic) carries what no route was given" }
    guard output.inFlight == nil else { return "\(publish.topic) has two messages in flight" }
    output.inFlight = (publish.number, number)
    defer { outputs[publish.topic] = output }
    if number == output.lost {
      output.lost = nil
      return nil
    }
    guard number > output.newest else {
      return "\(publish.topic) carries \(number) after \(output.newest)"
    }
    guard let place = output.waiting.firstIndex(where: { $0.number == number }) else {
      return "\(publish.topic) carries \(number), which does not wait"
    }
    if !output.isDebounced,
      let skipped = output.waiting[..<place].first(where: { !isOld($0.at, now) })
    {
      return "\(publish.topic) skips \(skipped.number), and its route forwards everything"
    }
    output.waiting.removeFirst(place + 1)
    output.newest = number
    output.lost = nil
    return nil
  }

  private func isOld(_ moment: Moment, _ now: Moment) -> Bool {
    moment.duration(to: now) > ttl
  }

  mutating func answered(_ flight: UInt64, _ outcome: RouteMachine.Outcome) {
    for (topic, output) in outputs where output.inFlight?.flight == flight {
      if outcome == .lost { outputs[topic]?.lost = output.inFlight?.number }
      outputs[topic]?.inFlight = nil
    }
  }

  mutating func closed() { isClosed = true }

  mutating func restart() {
    outputs = [:]
    isClosed = false
  }

  /// A message that was accepted and never forwarded with all brokers connected, if any.
  func unfinished(at now: Moment) -> String? {
    for (topic, output) in outputs.sorted(by: { $0.key < $1.key }) {
      if let last = output.waiting.last, !isOld(last.at, now) {
        return "\(topic) never carries \(last.number)"
      }
    }
    return nil
  }
}
