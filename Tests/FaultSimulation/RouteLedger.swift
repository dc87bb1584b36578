// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import JSON
import LastOut
import Routing

/// The ledger of routed messages: which of them must be forwarded, in which order, and as what.
///
/// A message that settles may give way to a newer one of its kind that follows directly. One that
/// is passed, and every message of a route without a policy, is forwarded unchanged, after those
/// before it. An urgent one takes the place of those that wait. Any message may be dropped once it
/// is older than the time to live.
///
/// After eight messages that each repeat what was forwarded less than 2 s before, an output may be
/// silent for 4 s: a bridge may be bringing them back.
struct RouteLedger {
  /// A message that a route accepted.
  struct Message {
    enum Body {
      case bytes([UInt8])
      /// The members of an object that merges with others.
      case members([JSONValue.Member])
    }

    var body: Body
    /// Whether it is forwarded at once and unchanged.
    var isPassed: Bool
    /// Whether it drops what waits.
    var isUrgent = false
    var isRetained = false
    var at: Moment
    /// Whether a passed message ended its quiet period.
    var isFlushed = false

    /// Whether `newer`, which follows directly, may be forwarded in its place.
    func yields(to newer: Message) -> Bool {
      switch (body, newer.body) {
      case (.bytes, .bytes), (.members, .members): !isPassed && !newer.isPassed
      case (.bytes, .members), (.members, .bytes): false
      }
    }
  }

  private struct Output {
    let topic: House.RoutedTopic
    /// Accepted and not forwarded yet, or lost, the oldest first.
    var waiting: [Message] = []
    /// Forwarded and not answered: its number, and the messages that it stands for.
    var inFlight: (number: UInt64, messages: [Message])?
    /// What was forwarded last, the oldest first.
    var forwarded: [(payload: [UInt8], at: Moment)] = []
    /// How many of the last messages have repeated some of that.
    var repetitions = 0
    var silentUntil = Moment.zero

    mutating func noteRepetition(of message: Message) {
      forwarded.removeAll { $0.at.duration(to: message.at) > .seconds(2) }
      let payload = RouteLedger.payload(of: [message])
      repetitions = forwarded.contains { $0.payload == payload } ? repetitions + 1 : 0
      if repetitions >= 8 { silentUntil = message.at.advanced(by: .seconds(4)) }
    }
  }

  let ttl: Duration
  private var outputs: [String: Output] = [:]
  private var isClosed = false

  init(ttl: Duration) { self.ttl = ttl }

  // MARK: - In

  /// Records a message that was published on an input; `isAccepted`: there was room for it.
  mutating func received(_ message: Message, on topic: House.RoutedTopic, isAccepted: Bool) {
    var output = outputs[topic.output] ?? Output(topic: topic)
    output.noteRepetition(of: message)
    if message.isUrgent, isAccepted { output.waiting = [] }
    if topic.isDebounced, let last = output.waiting.last, !last.yields(to: message) {
      for place in output.waiting.indices { output.waiting[place].isFlushed = true }
    }
    if isAccepted { output.waiting.append(message) }
    outputs[topic.output] = output
  }

  // MARK: - Out

  /// Records a forwarded message; returns the violated rule, if any.
  mutating func forwarded(
    _ publish: RouteMachine.Publish,
    to broker: Int,
    at now: Moment
  ) -> String? {
    let name = publish.topic
    guard var output = outputs[name] else { return "\(name) carries what no route was given" }
    guard output.inFlight == nil else { return "\(name) has two messages in flight" }
    guard broker == output.topic.target else { return "\(name) is forwarded to another broker" }
    guard let found = place(of: publish, in: output, at: now) else {
      let payload = String(decoding: publish.payload, as: UTF8.self)
      return "\(name) carries \(payload), and it is the turn of \(Self.text(output.waiting))"
    }
    let messages = Array(output.waiting[found])
    let isLast = found.upperBound == output.waiting.count
    output.waiting.removeFirst(found.upperBound)
    output.inFlight = (publish.number, messages)
    output.forwarded.append((publish.payload, now))
    outputs[name] = output
    guard let last = messages.last else { return nil }
    guard publish.retain == last.isRetained else { return "\(name) has a wrong retain flag" }
    let isEarly = output.topic.delay.map { last.at.duration(to: now) < $0 } ?? false
    if isEarly, isLast, !last.isPassed, !last.isFlushed, !isClosed, !output.topic.hasMaxWait {
      return "\(name) is forwarded before its quiet period has ended"
    }
    return nil
  }

  /// The waiting messages that a forwarded one stands for; `nil` if none may be forwarded as it is.
  private func place(
    of publish: RouteMachine.Publish,
    in output: Output,
    at now: Moment
  ) -> Range<Int>? {
    for last in output.waiting.indices {
      for first in (0...last).reversed() {
        if first < last, case .bytes = output.waiting[last].body { break }
        if first < last, !output.waiting[first].yields(to: output.waiting[first + 1]) { break }
        guard Self.payload(of: output.waiting[first...last]) == publish.payload else { continue }
        if isSkipped(output.waiting[..<first], before: output.waiting[first], at: now) {
          return first..<last + 1
        }
      }
    }
    return nil
  }

  /// Whether all these messages may have been dropped, before `next` was forwarded.
  private func isSkipped(_ messages: ArraySlice<Message>, before next: Message, at now: Moment)
    -> Bool
  {
    for place in messages.indices where !isOld(messages[place], now) {
      let follower = place + 1 < messages.endIndex ? messages[place + 1] : next
      guard case .bytes = messages[place].body, messages[place].yields(to: follower) else {
        return false
      }
    }
    return true
  }

  /// Of several messages, the newest of each member.
  private static func payload(of messages: ArraySlice<Message>) -> [UInt8] {
    var members: [JSONValue.Member] = []
    for message in messages {
      switch message.body {
      case .bytes(let bytes): return bytes
      case .members(let newer):
        for member in newer {
          if let place = members.firstIndex(where: { $0.name == member.name }) {
            members[place] = member
          } else {
            members.append(member)
          }
        }
      }
    }
    return JSONWriter.bytes(.object(members))
  }

  private static func text(_ messages: [Message]) -> String {
    messages.prefix(5).map { message in
      let payload = String(decoding: payload(of: [message]), as: UTF8.self)
      return message.isPassed ? "\(payload) (passed)" : payload
    }.joined(separator: ", ")
  }

  private func isOld(_ message: Message, _ now: Moment) -> Bool {
    message.at.duration(to: now) > ttl
  }

  // MARK: - Answers

  /// Records the answer to a message; a lost one waits again, before all others.
  mutating func answered(_ number: UInt64, _ outcome: PublishOutcome) {
    for (topic, output) in outputs {
      guard let flight = output.inFlight, flight.number == number else { continue }
      if outcome == .lost, !output.waiting.contains(where: \.isUrgent) {
        outputs[topic]?.waiting.insert(contentsOf: flight.messages, at: 0)
      }
      outputs[topic]?.inFlight = nil
    }
  }

  /// The messages in flight to a broker.
  func inFlight(to broker: Int) -> [UInt64] {
    outputs.values.compactMap { $0.topic.target == broker ? $0.inFlight?.number : nil }.sorted()
  }

  // MARK: - The gateway

  mutating func closed() { isClosed = true }

  mutating func restart() {
    outputs = [:]
    isClosed = false
  }

  // MARK: - Checks

  /// A message that could be forwarded now and is not, if any.
  func keptBack(for broker: Int, at now: Moment) -> String? {
    for (name, output) in outputs.sorted(by: { $0.key < $1.key })
    where output.topic.target == broker && output.inFlight == nil && output.silentUntil <= now {
      let waiting = output.waiting.filter { !isOld($0, now) }
      if waiting.contains(where: { $0.isPassed }) { return "\(name) keeps back a passed message" }
      guard let last = waiting.last, let delay = output.topic.delay else { continue }
      if last.at.duration(to: now) >= delay { return "\(name) keeps back what has settled" }
    }
    return nil
  }

  /// Topics whose last message was not acknowledged.
  func unsent(at now: Moment) -> [String] {
    outputs.filter { _, output in
      output.inFlight != nil || output.waiting.contains { !isOld($0, now) }
    }.keys.sorted()
  }

  /// A message that was accepted and never forwarded with all brokers connected, if any.
  func unfinished(at now: Moment) -> String? {
    unsent(at: now).first.map { "\($0) never carries \(Self.text(outputs[$0]?.waiting ?? []))" }
  }
}
