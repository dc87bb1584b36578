// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Routing

/// Messages that routes carry from one topic, or broker, to another.
extension SimulatedLife {
  /// Publishes on a topic that a route matches, often several times, or disconnects the second
  /// broker.
  func routedMessages() {
    if random.chance(8) { return cutFar() }
    let topic = House.routedTopics[random.below(House.routedTopics.count)]
    routedMessage(on: topic)
    while breach == nil, random.chance(50) { routedMessage(on: topic) }
  }

  private func routedMessage(on topic: House.RoutedTopic) {
    wake()
    guard breach == nil else { return }
    seen[.routed] += 1
    let name = Array(topic.name.utf8)
    let message = anyMessage(on: topic)
    let payload = Self.payload(of: message)
    if isTraced { log("\(topic.name) carries \(String(decoding: payload, as: UTF8.self))") }
    let keys = core.outputs(fedBy: name.span, broker: topic.broker)
    let rejected = core.rejectedCount(.overflow)
    let returned = core.rejectedCount(.loop)
    // Some messages have passed this gateway before; retained ones may be stale.
    let isLoop = random.chance(10)
    let isStale = message.isRetained && topic.isDebounced
    let isOpen = !core.isShuttingDown
    core.route(
      payload.span,
      document: Self.document(of: message, payload),
      for: keys,
      topic: name.span,
      retained: message.isRetained,
      trail: isLoop ? "there here" : random.chance(20) ? "there" : "",
      mark: "here",
      at: now
    )
    guard isOpen, !isLoop, !isStale else { return }
    guard core.rejectedCount(.loop) == returned else {
      return fail("a message on \(topic.name) is taken for one that a bridge brought back")
    }
    let isAccepted = core.rejectedCount(.overflow) == rejected
    if isAccepted, message.isPassed, topic.isDebounced { seen[.passed] += 1 }
    if isAccepted, message.isUrgent { seen[.urgent] += 1 }
    routes.received(message, on: topic, isAccepted: isAccepted)
  }

  /// Any message; it carries the number of all routed ones, unless it has to be one of a list.
  private func anyMessage(on topic: House.RoutedTopic) -> RouteLedger.Message {
    let number = JSONValue.integer(Int64(seen[.routed]))
    var body = RouteLedger.Message.Body.bytes(Array("\(seen[.routed])".utf8))
    var isPassed = !topic.isDebounced
    var isUrgent = false
    if topic.isDebounced, random.chance(35) {
      if topic.merges {
        isPassed = true
        body = .bytes(JSONWriter.bytes(.object([.init("step", number)])))
      } else if topic.passes {
        isPassed = true
        isUrgent = random.chance(40)
        let payloads = isUrgent ? House.urgentPayloads : House.passedPayloads
        body = .bytes(Array(payloads[seen[.routed] % payloads.count].utf8))
      }
    } else if topic.merges, random.chance(85) {
      var members: [JSONValue.Member] = []
      for name in ["a", "b", "c"] where random.chance(50) { members.append(.init(name, number)) }
      if members.isEmpty { members.append(.init("d", number)) }
      body = .members(members)
    }
    return RouteLedger.Message(
      body: body,
      isPassed: isPassed,
      isUrgent: isUrgent,
      isRetained: random.chance(10),
      at: now
    )
  }

  private static func payload(of message: RouteLedger.Message) -> [UInt8] {
    switch message.body {
    case .bytes(let bytes): bytes
    case .members(let members): JSONWriter.bytes(.object(members))
    }
  }

  /// The payload as JSON, as the host reads it.
  private static func document(
    of message: RouteLedger.Message,
    _ payload: [UInt8]
  ) -> JSONValue? {
    switch message.body {
    case .members(let members): return .object(members)
    case .bytes:
      let text = String(decoding: payload, as: UTF8.self)
      if let number = Int64(text) { return .integer(number) }
      guard text.hasPrefix("{\"step\":"), let number = Int64(text.dropFirst(8).dropLast()) else {
        return nil
      }
      return .object([.init("step", .integer(number))])
    }
  }

  // MARK: - To the brokers

  /// Performs the forwarding of a message.
  func forward(_ publish: RouteMachine.Publish, to broker: Int) {
    seen[.forwarded] += 1
    if isTraced {
      log("forwards: \(publish.topic) \(String(decoding: publish.payload, as: UTF8.self))")
    }
    if publish.topic.hasPrefix("direct/") { return forwardGrouped(publish) }
    guard broker == 1 ? world.isFarConnected : core.isConnected else {
      return fail("a routed message is sent to an offline broker")
    }
    if let wrong = routes.forwarded(publish, to: broker, at: now) { return fail(wrong) }
    let outcome: PublishOutcome =
      if !isFaultFree, random.chance(probabilities.lostAnswer) {
        .lost
      } else if !isFaultFree, random.chance(probabilities.refusal / 2) {
        .refused("not authorized")
      } else {
        .acknowledged
      }
    let isSlow = !isFaultFree && random.chance(probabilities.slowLink)
    agenda.plan(
      .routeAnswer(publish.number, outcome, life: seen[.restarts]),
      at: now.advanced(by: .milliseconds(random.within(isSlow ? 50...2500 : 0...40)))
    )
  }

  /// Handles the reply to a routed message, or its loss.
  func answerRoute(_ number: UInt64, _ outcome: PublishOutcome) {
    routes.answered(number, outcome)
    lamps.answered(number)
    core.routeFinished(number, outcome)
  }

  /// Loses the messages in flight to a broker whose connection has ended.
  func loseRoutes(to broker: Int) {
    for number in routes.inFlight(to: broker) + (broker == 1 ? lamps.unanswered : []) {
      seen[.lostRoutes] += 1
      answerRoute(number, .lost)
    }
  }

  private func cutFar() {
    guard world.isFarConnected else { return }
    if isTraced { log("the second broker is gone") }
    world.isFarConnected = false
    loseRoutes(to: 1)
    let delay = random.chance(70) ? random.within(100...3000) : random.within(3000...70_000)
    agenda.plan(.farReconnection, at: now.advanced(by: .milliseconds(delay)))
  }
}
