// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// Counts rejections of one kind and limits their log lines: for each topic the first at once, then
/// at most one in ten seconds, with the count.
///
/// Some topics are limited one by one and all others together, so that a flood of topics logs no
/// more than a flood on one.
package struct RejectionTally: Sendable {
  /// The rejections on one topic.
  private struct Entry {
    var loggedAt: Moment
    var unlogged: UInt64 = 0
  }

  package private(set) var total: UInt64 = 0
  private var entries: [String: Entry] = [:]
  private static let interval = Duration.seconds(10)
  /// How many topics are limited one by one.
  private static let topicLimit = 16
  /// Stands for the others; no topic is empty.
  private static let others = ""

  package init() {}

  /// Counts a rejection that is not logged.
  mutating func count() { total += 1 }

  /// Counts a rejection on a topic, or of a kind without topics; returns the number since its last
  /// line if a line is due.
  package mutating func record(topic: String = others, at now: Moment) -> UInt64? {
    total += 1
    let name = entries[topic] == nil && !makeRoom(at: now) ? Self.others : topic
    guard var entry = entries[name] else {
      entries[name] = Entry(loggedAt: now)
      return 1
    }
    entry.unlogged += 1
    defer { entries[name] = entry }
    guard entry.loggedAt.duration(to: now) >= Self.interval else { return nil }
    defer { entry = Entry(loggedAt: now) }
    return entry.unlogged
  }

  /// Forgets topics that may be logged again; `false` if there is no room for another one.
  private mutating func makeRoom(at now: Moment) -> Bool {
    if entries.count < Self.topicLimit { return true }
    entries = entries.filter { $0.value.loggedAt.duration(to: now) < Self.interval }
    return entries.count < Self.topicLimit
  }
}

/// Counts rejected messages by kind and logs them without flooding.
package struct RejectionLog {
  package enum Kind: String, CaseIterable, Sendable {
    case unknownKey = "unknown key"
    case badValue = "bad value"
    case retained = "retained command"
    case tooLarge = "payload too large"
    case loop = "message of our own"
    case overflow = "too many keys"
    case closing = "shutting down"
    case held = "held by a person"
  }

  private var tallies: [Kind: RejectionTally] = [:]
  private var retainedTopics: Set<String> = []
  private var unreadTopics: Set<String> = []
  private var returnedTopics: Set<String> = []
  /// How many topics of retained commands, of unread announcements, and of messages that came back,
  /// are named in the log.
  private static let topicLimit = 1000

  package init() {}

  package func total(_ kind: Kind) -> UInt64 { tallies[kind]?.total ?? 0 }

  /// Counts a rejected message; the result is the line to log, if one is due.
  mutating func record(
    _ kind: Kind,
    topic: String,
    reason: @autoclosure () -> String,
    at now: Moment
  ) -> LogEntry? {
    let topic = Excerpt.of(topic)
    guard let unlogged = tallies[kind, default: RejectionTally()].record(topic: topic, at: now)
    else { return nil }
    return LogEntry(
      .warning,
      "Message rejected",
      [
        "kind": kind.rawValue, "topic": topic, "reason": reason(),
        "count": "\(unlogged)", "total": "\(total(kind))",
      ]
    )
  }

  /// Records an announcement that is passed on as it came, because it cannot be read; each topic is
  /// logged once.
  mutating func recordUnread(topic: String, size: Int) -> LogEntry? {
    guard let topic = Self.firstMention(of: topic, in: &unreadTopics) else { return nil }
    return LogEntry(
      .warning,
      "Announcement passed on unchanged: it is no JSON object, or larger than limits.payload",
      ["topic": topic, "bytes": "\(size)"]
    )
  }

  /// Counts a message that the gateway has forwarded before; each topic is logged once.
  mutating func recordReturned(topic: String, to: String?, reason: String) -> LogEntry? {
    tallies[.loop, default: RejectionTally()].count()
    guard let topic = Self.firstMention(of: topic, in: &returnedTopics) else { return nil }
    return LogEntry(
      .warning,
      "Message rejected",
      [
        "kind": Kind.loop.rawValue, "topic": topic, "to": to.map { Excerpt.of($0) } ?? "",
        "reason": reason, "total": "\(total(.loop))",
      ]
    )
  }

  /// Counts a retained message on a command or route topic; each topic is logged once.
  ///
  /// Such a message is ignored: a stale command must not replay.
  mutating func recordRetained(topic: String) -> LogEntry? {
    tallies[.retained, default: RejectionTally()].count()
    guard let topic = Self.firstMention(of: topic, in: &retainedTopics) else { return nil }
    return LogEntry(.warning, "Retained command ignored", ["topic": topic])
  }

  /// The topic as it is logged; `nil` if it was, or if too many were.
  private static func firstMention(of topic: String, in logged: inout Set<String>) -> String? {
    let topic = Excerpt.of(topic)
    return logged.count < topicLimit && logged.insert(topic).inserted ? topic : nil
  }
}

extension RejectionLog.Kind {
  /// The kind of rejection that an error stands for.
  package init(_ error: ValidationError) {
    switch error {
    case .tooManyPending, .tooManyActions, .noRoomForAll: self = .overflow
    case .shuttingDown: self = .closing
    case .held: self = .held
    case .inProperty(_, .held): self = .held
    case .unknownDevice, .unknownProperty, .unknownScene, .invalidKey, .unknownName,
      .inProperty, .wrongType,
      .outOfRange,
      .notAChoice, .unsupported, .notDurable, .noBase:
      self = .badValue
    }
  }
}
