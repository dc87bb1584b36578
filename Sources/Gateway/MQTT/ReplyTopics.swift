// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Values

/// Which MQTT 5 response topics get replies: those below `<base>/reply/`, and those that a filter
/// of `mqtt.reply_topics` matches.
///
/// The sender of a change chooses its response topic. Without a list of what is allowed, permission
/// to send changes would be permission to publish wherever the gateway may.
struct ReplyTopics {
  /// How many topics without replies are named in the log.
  private static let namedLimit = 1000

  /// The longest response topic and correlation data, in bytes; both are kept while a value waits.
  static let longest = 1024

  private let filters: [String]
  private let prefix: String
  /// The hash values of the topics that were named; the topics themselves may be long.
  private var named: Set<Int> = []

  init(_ configuration: GatewayConfiguration) {
    prefix = "\(configuration.baseTopic)/reply/"
    filters = configuration.replyTopics
  }

  func contains(_ topic: String) -> Bool {
    if topic.utf8.count > prefix.utf8.count, topic.utf8.starts(with: prefix.utf8) { return true }
    return filters.contains { Topic.matches(filter: $0, name: topic) }
  }

  /// Whether a sender gets a reply.
  enum Answer {
    case allowed
    /// What the log should say, the first time.
    case refused(Refusal?)
  }

  /// A line of the log.
  struct Refusal {
    let message: StaticString
    let facts: KeyValuePairs<String, String>
  }

  /// Whether a sender gets a reply on the response topic that it names.
  mutating func answer(
    _ topic: String,
    _ correlationData: [UInt8]?,
    isCommand: (String) -> Bool
  ) -> Answer {
    // First, because the rest takes longer the longer the topic is.
    let size = max(topic.utf8.count, correlationData?.count ?? 0)
    guard size <= Self.longest else {
      guard isNew(topic) else { return .refused(nil) }
      return .refused(
        Refusal(
          message: "No reply sent: the response topic or its correlation data is too long",
          facts: [
            "topic": Excerpt.of(topic), "bytes": String(size), "limit": String(Self.longest),
          ]
        )
      )
    }
    guard Topic.problem(inName: topic) == nil else { return .refused(nil) }
    guard !contains(topic) || isCommand(topic) else { return .allowed }
    guard isNew(topic) else { return .refused(nil) }
    let allowed = (["\(prefix)#"] + filters).joined(separator: ", ")
    return .refused(
      Refusal(
        message: "No reply sent: the response topic is not allowed",
        facts: ["topic": Excerpt.of(topic), "allowed": allowed]
      )
    )
  }

  /// Whether the log has not named a topic yet; long ones count by how they begin.
  private mutating func isNew(_ topic: String) -> Bool {
    named.count < Self.namedLimit && named.insert(Excerpt.of(topic).hashValue).inserted
  }
}
