// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The publishes that are with the library: how many may be, since when, and whose they are.
struct PublishWindow: Sendable {
  /// One publish that has not been answered.
  struct Entry: Hashable, Sendable {
    /// The library's message identifier.
    var identifier: Int32
    var token: MQTTClient.Token
    var topic: String
    var qos = 1
    var sentAt: Moment
  }

  /// How many may be unanswered at a time.
  var limit: Int
  /// In the order of sending.
  private(set) var entries: [Entry] = []
  private(set) var poisonTopics = PoisonTopics()

  init(limit: Int) {
    self.limit = max(1, limit)
  }

  /// Whether another publish may be handed over.
  var hasRoom: Bool {
    entries.count < limit && (entries.isEmpty || !poisonTopics.isProbing)
  }

  /// When the oldest unanswered publish was handed over.
  var oldest: Moment? { entries.first?.sentAt }

  /// Whether there would be more room if everything was written.
  var awaitsWriting: Bool { !hasRoom && entries.contains { $0.qos == 0 } }

  mutating func sent(_ entry: Entry) {
    entries.append(entry)
  }

  /// Takes out the publish that was answered; `nil` if it is not known.
  mutating func answered(identifier: Int32) -> Entry? {
    guard let position = entries.firstIndex(where: { $0.identifier == identifier }) else {
      return nil
    }
    let entry = entries.remove(at: position)
    poisonTopics.answered(entry.topic)
    return entry
  }

  /// Empties the window at the end of a connection.
  ///
  /// - Parameter byPeer: Whether the peer dropped it, perhaps for what was in flight; not so after
  ///   a deadline of ours, or an orderly end.
  /// - Returns: What was in flight, in the order of sending, and the topic quarantined for it.
  mutating func connectionEnded(byPeer: Bool) -> (lost: [Entry], quarantined: String?) {
    let lost = entries
    entries = []
    let quarantined = byPeer ? poisonTopics.connectionDropped(inFlight: lost.map(\.topic)) : nil
    return (lost, quarantined)
  }

  /// Ends the probing; see ``PoisonTopics/clear()``.
  mutating func connectionProvedStable() {
    poisonTopics.clear()
  }
}
