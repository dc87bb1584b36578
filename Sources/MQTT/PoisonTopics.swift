// Settle
// SPDX-License-Identifier: Apache-2.0

/// Finds the publish that makes a broker drop the connection, and quarantines its topic.
///
/// A broker may answer some messages by closing the connection. Sent again on each new connection,
/// they would block everything else for ever. Topics in flight at a loss are therefore suspected and
/// sent one at a time; a topic that was alone in flight at three losses in a row is quarantined.
struct PoisonTopics: Hashable, Sendable {
  /// Losses in a row, alone in flight, until a topic is refused.
  static let strikesToQuarantine = 3
  /// Bound on remembered topics; beyond it the memory starts over.
  static let mostTopics = 1000

  /// In flight at a loss and not acknowledged since.
  private var suspects: Set<String> = []
  /// Losses in a row at which the topic was alone in flight.
  private var strikes: [String: Int] = [:]
  private var quarantined: Set<String> = []

  /// While true, publishes go one at a time.
  var isProbing: Bool { !suspects.isEmpty }

  /// How many topics are remembered, for whatever reason; bounded.
  var rememberedCount: Int { suspects.count + strikes.count + quarantined.count }

  func isQuarantined(_ topic: String) -> Bool {
    !quarantined.isEmpty && quarantined.contains(topic)
  }

  /// The connection was dropped by the peer with `topics` in flight.
  ///
  /// - Returns: The topic that is quarantined from now on, if there is one.
  mutating func connectionDropped(inFlight topics: [String]) -> String? {
    if suspects.count + topics.count > Self.mostTopics { suspects = [] }
    if strikes.count >= Self.mostTopics { strikes = [:] }
    suspects.formUnion(topics)
    guard let topic = topics.first, topics.count == 1 else { return nil }
    strikes[topic, default: 0] += 1
    guard strikes[topic, default: 0] >= Self.strikesToQuarantine else { return nil }
    strikes[topic] = nil
    suspects.remove(topic)
    if quarantined.count >= Self.mostTopics { quarantined = [] }
    quarantined.insert(topic)
    return topic
  }

  /// The broker has answered a publish and kept the connection.
  mutating func answered(_ topic: String) {
    guard isProbing || !strikes.isEmpty else { return }
    suspects.remove(topic)
    strikes[topic] = nil
  }

  /// The connection has proved stable; a topic that is still suspected may never be sent again.
  mutating func clear() {
    suspects = []
  }
}
