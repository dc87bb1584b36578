// Settle
// SPDX-License-Identifier: Apache-2.0

/// Finds the publish that makes a broker drop the connection, and quarantines its topic.
///
/// A broker may react to some messages by closing the connection. If they were sent again on each
/// new connection, nothing else could be sent. Topics in flight at a loss are therefore probed: they
/// are sent one at a time. A topic that was alone in flight at three losses in a row is quarantined.
struct PoisonTopics: Hashable, Sendable {
  /// How many losses in a row, alone in flight, quarantine a topic.
  static let strikesToQuarantine = 3
  /// The maximum number of remembered topics; above it the memory is cleared.
  static let mostTopics = 1000

  /// Topics in flight at a loss and not acknowledged since.
  private var probedTopics: Set<String> = []
  /// Losses in a row at which the topic was alone in flight.
  private var strikes: [String: Int] = [:]
  private var quarantined: Set<String> = []

  /// Whether publishes must be sent one at a time.
  var isProbing: Bool { !probedTopics.isEmpty }

  /// The number of remembered topics.
  var rememberedCount: Int { probedTopics.count + strikes.count + quarantined.count }

  func isQuarantined(_ topic: String) -> Bool {
    !quarantined.isEmpty && quarantined.contains(topic)
  }

  /// Records that the peer dropped the connection with `topics` in flight.
  ///
  /// - Returns: The topic that is now quarantined, if any.
  mutating func connectionDropped(inFlight topics: [String]) -> String? {
    if probedTopics.count + topics.count > Self.mostTopics { probedTopics = [] }
    if strikes.count >= Self.mostTopics { strikes = [:] }
    probedTopics.formUnion(topics)
    guard let topic = topics.first, topics.count == 1 else { return nil }
    strikes[topic, default: 0] += 1
    guard strikes[topic, default: 0] >= Self.strikesToQuarantine else { return nil }
    strikes[topic] = nil
    probedTopics.remove(topic)
    if quarantined.count >= Self.mostTopics { quarantined = [] }
    quarantined.insert(topic)
    return topic
  }

  /// Records that the broker has answered a publish and kept the connection.
  mutating func answered(_ topic: String) {
    guard isProbing || !strikes.isEmpty else { return }
    probedTopics.remove(topic)
    strikes[topic] = nil
  }

  /// Ends the probing: the connection is stable, and a probed topic may never be sent again.
  mutating func clear() {
    probedTopics = []
  }
}
