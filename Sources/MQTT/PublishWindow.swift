// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import MQTTTopics

/// The publishes in flight: their maximum number, send times and owners.
struct PublishWindow: Sendable {
  /// One unanswered publish.
  struct Entry: Hashable, Sendable {
    /// The library's message identifier.
    var identifier: Int32
    var token: MQTTClient.Token
    var topic: String
    var qos = 1
    var sentAt: Moment
    /// Whether a later publish of the same quality of service was answered: answers come in order.
    var isPassed = false

    /// The outcome when the connection ends first.
    func outcomeOfLoss(quarantined: String?) -> MQTTClient.Outcome {
      guard topic == quarantined else { return .lost }
      return .refused(reason: "quarantined: the broker drops the connection for it")
    }
  }

  /// The maximum number of unanswered publishes.
  var limit: Int
  /// In the order of sending.
  private(set) var entries: [Entry] = []
  private(set) var poisonTopics = PoisonTopics()
  /// When the broker last sent something while a publish was unanswered.
  private var heardAt: Moment?
  /// When an answer was last due although not all that the broker had sent was read.
  private var behindAt: Moment?

  init(limit: Int) {
    self.limit = max(1, limit)
  }

  /// Whether the window has room for another publish.
  var hasRoom: Bool {
    entries.count < limit && (entries.isEmpty || !poisonTopics.isProbing)
  }

  /// When the oldest unanswered publish was sent.
  var oldest: Moment? { entries.first?.sentAt }

  /// When the broker is given up unless it answers the oldest publish.
  ///
  /// That answer may follow other packets, so each of them allows another `deadline`, up to
  /// ``mostDeadlines`` in all. A publish that was passed over will not be answered.
  func due(after deadline: Duration) -> Moment? {
    guard let oldest = entries.first else { return nil }
    let start = max(oldest.sentAt, behindAt ?? oldest.sentAt)
    guard let heardAt, !oldest.isPassed else { return start.advanced(by: deadline) }
    return min(
      max(start, heardAt).advanced(by: deadline),
      start.advanced(by: deadline * Self.mostDeadlines)
    )
  }

  func isOverdue(at now: Moment, after deadline: Duration) -> Bool {
    due(after: deadline).map { $0 <= now } ?? false
  }

  /// How long a broker may take for an answer while it sends other packets, in deadlines.
  private static let mostDeadlines = 10

  /// Records that the broker has sent something.
  mutating func heard(at now: Moment) { heardAt = now }

  /// Records that the answer may be among what was not read yet: its time begins again.
  mutating func fellBehind(at now: Moment) { behindAt = now }

  /// Whether writing the queued packets would make room.
  var awaitsWriting: Bool { !hasRoom && entries.contains { $0.qos == 0 } }

  mutating func sent(_ entry: Entry) {
    entries.append(entry)
  }

  /// Removes and returns the answered publish; `nil` if it is unknown.
  mutating func answered(identifier: Int32) -> Entry? {
    guard let position = entries.firstIndex(where: { $0.identifier == identifier }) else {
      return nil
    }
    let entry = entries.remove(at: position)
    for earlier in entries.indices.prefix(position) where entries[earlier].qos == entry.qos {
      entries[earlier].isPassed = true
    }
    poisonTopics.answered(entry.topic)
    return entry
  }

  /// Empties the window at the end of a connection.
  ///
  /// - Parameter byPeer: Whether the peer dropped the connection, perhaps because of a message in
  ///   flight; `false` after a deadline of the client or a disconnect.
  /// - Returns: The publishes in flight, in the order of sending, and the topic quarantined for it.
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

  /// Why a publish is refused; `nil` if it is valid.
  func refusal(topic: String, payload: [UInt8], qos: Int) -> String? {
    if poisonTopics.isQuarantined(topic) {
      return "quarantined: the broker dropped the connection for it"
        + " \(PoisonTopics.strikesToQuarantine) times"
    }
    if !(0...2).contains(qos) { return "quality of service \(qos); 0, 1 and 2 exist" }
    if payload.count > Self.largestPayload {
      return "the payload has \(payload.count) bytes; at most \(Self.largestPayload) are possible"
    }
    return Topic.problem(inName: topic)
  }

  /// The largest length that MQTT can express, minus the longest topic.
  static let largestPayload = 268_435_455 - 65_537 - 4096
}
