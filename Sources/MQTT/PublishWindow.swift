// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The publishes in flight: their maximum number, send times and owners.
struct PublishWindow: Sendable {
  /// One unanswered publish.
  struct Entry: Hashable, Sendable {
    /// The library's message identifier.
    var identifier: Int32
    var token: MQTTClient.Token
    var topic: String
    var payload: [UInt8] = []
    var qos = 1
    var sentAt: Moment
    /// Whether a later publish of the same quality of service was answered: answers come in order.
    var isPassed = false
  }

  /// What the end of a connection does to its publishes.
  struct Loss {
    /// The publishes in flight, in the order of sending.
    var entries: [Entry]
    /// The topic that is held back from now on, and until when.
    var quarantined: (topic: String, until: Moment)?

    /// The outcome of one of the publishes.
    func outcome(of entry: Entry, at now: Moment) -> PublishOutcome {
      guard let quarantined, entry.topic == quarantined.topic else { return .lost }
      return .refused(PublishWindow.words(now, quarantined.until))
    }
  }

  /// The maximum number of unanswered publishes.
  var limit: Int
  /// In the order of sending.
  private(set) var entries: [Entry] = []
  private(set) var poisonTopics: PoisonTopics
  /// When the broker last sent something while a publish was unanswered.
  private var heardAt: Moment?
  /// When an answer was last due although not all that the broker had sent was read.
  private var behindAt: Moment?
  /// Whether nothing is sent until the connection has lasted for ``ConnectionPhase/goodTime``.
  private(set) var isHeld = false
  /// Whether the broker has answered a publish on this connection.
  private var hasAnswer = false

  /// - Parameters:
  ///   - limit: The maximum number of unanswered publishes.
  ///   - quarantine: How long a topic is held back for which the broker drops the connection.
  init(limit: Int, quarantine: ClosedRange<Duration> = .seconds(10)...(.seconds(600))) {
    self.limit = max(1, limit)
    poisonTopics = PoisonTopics(durations: quarantine)
  }

  /// Whether the window has room for another publish.
  var hasRoom: Bool {
    entries.count < limit && (entries.isEmpty || !poisonTopics.isProbing) && !isHeld
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
    if entry.qos > 0 { hasAnswer = true }
    poisonTopics.answered(entry.topic, entry.payload)
    return entry
  }

  /// The broker has accepted a connection.
  mutating func connected() { isHeld = poisonTopics.isSuspicious }

  /// The connection has lasted for ``ConnectionPhase/goodTime``.
  mutating func connectionProvedGood() { isHeld = false }

  /// Empties the window at the end of a connection.
  ///
  /// - Parameters:
  ///   - since: When the peer accepted the connection that it dropped, perhaps because of a message
  ///     in flight; `nil` for a connection that was not accepted, or that this client ended.
  ///   - now: The time of the end.
  /// - Returns: The publishes in flight, and the topic that is quarantined for it.
  mutating func connectionEnded(droppedSince since: Moment?, at now: Moment) -> Loss {
    var loss = Loss(entries: entries)
    if let since {
      let wasGood =
        hasAnswer || oldest.map { since.duration(to: $0) } ?? .zero >= ConnectionPhase.goodTime
      loss.quarantined = poisonTopics.connectionDropped(
        inFlight: entries.map { ($0.topic, $0.payload) },
        wasGood: wasGood,
        at: now
      )
    }
    entries = []
    hasAnswer = false
    isHeld = false
    return loss
  }

  /// Ends the probing; see ``PoisonTopics/clear()``.
  mutating func connectionProvedStable() {
    poisonTopics.clear()
  }

  /// Why a publish is refused; `nil` if it is valid.
  func refusal(topic: String, payload: [UInt8], qos: Int, at now: Moment) -> String? {
    if let until = poisonTopics.heldUntil(topic: topic, payload: payload, at: now) {
      return Self.words(now, until)
    }
    if !(0...2).contains(qos) { return "quality of service \(qos); 0, 1 and 2 exist" }
    if payload.count > Self.largestPayload {
      return "the payload has \(payload.count) bytes; at most \(Self.largestPayload) are possible"
    }
    return Topic.problem(inName: topic)
  }

  private static func words(_ now: Moment, _ until: Moment) -> String {
    "quarantined: the broker drops the connection for it; not sent again for"
      + " \(Reconnection.tenths(now.duration(to: until))) s"
  }

  /// The largest length that MQTT can express, minus the longest topic.
  static let largestPayload = 268_435_455 - 65_537 - 4096
}
