// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Finds the publish that makes a broker drop the connection, and holds it back for a time.
///
/// A broker may react to some messages by closing the connection. If they were sent again on each
/// new connection, nothing else could be sent. Topics in flight at a loss are therefore probed:
/// they are sent one at a time. A topic that was alone in flight at three losses in a row is
/// quarantined, if the last connection was good before that publish and the next one lasts without
/// it; a link that is cut or a broker that restarts is no fault of the message.
///
/// A quarantine ends by itself, after a time that doubles each time. Then one loss begins the next
/// one, and so it does for another payload, which is not held back: the broker may accept it. Where
/// it accepted none of several payloads, all of the topic wait. An acknowledgement, or the longest
/// duration after its end, forgets it.
struct PoisonTopics: Hashable, Sendable {
  /// The payload that made the broker drop the connection, and how long it is held back.
  private struct Quarantine: Hashable, Sendable {
    var digest: Int
    var until: Moment
    var duration: Duration
    /// How many payloads in a row were such.
    var payloadCount = 1
  }

  /// How many losses in a row, alone in flight, quarantine a topic.
  static let strikesToQuarantine = 3
  /// How many payloads in a row quarantine all of a topic.
  static let payloadsToQuarantine = 3
  /// The maximum number of remembered topics; above it the memory is cleared.
  static let mostTopics = 1000

  /// The durations of the first quarantine of a topic and of the longest one.
  private let durations: ClosedRange<Duration>
  /// Topics in flight at a loss and not acknowledged since.
  private var probedTopics: Set<String> = []
  /// Losses in a row at which the topic was alone in flight.
  private var strikes: [String: Int] = [:]
  /// Those that have ended among them, because the next one of their topic is longer.
  private var quarantines: [String: Quarantine] = [:]
  /// The topic whose quarantine began with the last loss; the next connection must last without it.
  private var newest: String?

  init(durations: ClosedRange<Duration>) {
    self.durations = durations
  }

  /// Whether publishes must be sent one at a time.
  var isProbing: Bool { !probedTopics.isEmpty }

  /// Whether something ends once a connection has proved stable.
  var awaitsStability: Bool { isProbing || newest != nil }

  /// Whether the next loss may quarantine a topic, so that a connection must be good before.
  var isSuspicious: Bool { strikes.values.contains { $0 + 1 >= Self.strikesToQuarantine } }

  /// The number of remembered topics.
  var rememberedCount: Int { probedTopics.count + strikes.count + quarantines.count }

  /// Until when a publish is held back; `nil` if it is not.
  func heldUntil(topic: String, payload: [UInt8], at now: Moment) -> Moment? {
    guard !quarantines.isEmpty, let known = quarantines[topic], now < known.until,
      known.digest == payload.hashValue || known.payloadCount >= Self.payloadsToQuarantine
    else { return nil }
    return known.until
  }

  /// The topics that are in quarantine, in order, and until when.
  func quarantined(at now: Moment) -> [(topic: String, until: Moment)] {
    quarantines.filter { now < $0.value.until }.map { (topic: $0.key, until: $0.value.until) }
      .sorted { $0.topic < $1.topic }
  }

  /// Records that the peer dropped an accepted connection with `publishes` in flight.
  ///
  /// - Parameters:
  ///   - publishes: Topics and payloads, in the order of sending.
  ///   - wasGood: Whether the connection had lasted or answered something before the first of them.
  ///   - now: The time of the loss.
  /// - Returns: The topic that is now quarantined, if any, and until when.
  mutating func connectionDropped(
    inFlight publishes: [(topic: String, payload: [UInt8])],
    wasGood: Bool,
    at now: Moment
  ) -> (topic: String, until: Moment)? {
    let previous = newest
    newest = nil
    guard let (topic, payload) = publishes.first else {
      // It is lost without any message, so the messages before were not the cause.
      if let previous { quarantines[previous] = nil }
      strikes = [:]
      return nil
    }
    if probedTopics.count + publishes.count > Self.mostTopics { probedTopics = [] }
    if strikes.count >= Self.mostTopics { strikes = [:] }
    probedTopics.formUnion(publishes.map(\.topic))
    guard publishes.count == 1 else { return nil }
    // Long after its end it counts no more.
    let known = quarantines[topic].flatMap {
      now < $0.until.advanced(by: durations.upperBound) ? $0 : nil
    }
    let last = Self.strikesToQuarantine - 1
    let count = known == nil ? strikes[topic, default: 0] : last
    guard count >= last, wasGood else {
      strikes[topic] = min(count + 1, last)
      return nil
    }
    strikes[topic] = nil
    probedTopics.remove(topic)
    if quarantines.count >= Self.mostTopics { quarantines = [:] }
    let duration = known.map { min($0.duration * 2, durations.upperBound) } ?? durations.lowerBound
    let until = now.advanced(by: duration)
    var next = Quarantine(digest: payload.hashValue, until: until, duration: duration)
    if let known { next.payloadCount = known.payloadCount + (known.digest == next.digest ? 0 : 1) }
    quarantines[topic] = next
    newest = topic
    return (topic, until)
  }

  /// Records that the broker has answered a publish and kept the connection.
  mutating func answered(_ topic: String, _ payload: [UInt8]) {
    guard isProbing || !strikes.isEmpty || !quarantines.isEmpty else { return }
    probedTopics.remove(topic)
    strikes[topic] = nil
    guard let known = quarantines[topic] else { return }
    quarantines[topic]?.payloadCount = 1
    if known.digest == payload.hashValue { quarantines[topic] = nil }
  }

  /// Ends the probing: the connection is stable, and a probed topic may never be sent again.
  mutating func clear() {
    probedTopics = []
    newest = nil
  }
}
