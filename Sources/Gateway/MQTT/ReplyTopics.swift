// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Operations
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
  private let log: Logger
  /// The hash values of the topics that were named; the topics themselves may be long.
  private var named: Set<Int> = []

  init(_ configuration: GatewayConfiguration, log: Logger) {
    prefix = "\(configuration.baseTopic)/reply/"
    filters = configuration.replyTopics
    self.log = log
  }

  func contains(_ topic: String) -> Bool {
    if topic.utf8.count > prefix.utf8.count, topic.utf8.starts(with: prefix.utf8) { return true }
    return filters.contains { Topic.matches(filter: $0, name: topic) }
  }

  /// Whether a sender gets a reply on the response topic that it names; if not, the log says why
  /// the first time.
  mutating func allows(
    _ topic: String,
    _ correlationData: [UInt8]?,
    isCommand: (String) -> Bool
  ) -> Bool {
    // First, because the rest takes longer the longer the topic is.
    let size = max(topic.utf8.count, correlationData?.count ?? 0)
    guard size <= Self.longest else {
      if isNew(topic) {
        log.warning(
          "No reply sent: the response topic or its correlation data is too long",
          ["topic": Excerpt.of(topic), "bytes": String(size), "limit": String(Self.longest)]
        )
      }
      return false
    }
    guard Topic.problem(inName: topic) == nil else { return false }
    guard !contains(topic) || isCommand(topic) else { return true }
    if isNew(topic) {
      let allowed = (["\(prefix)#"] + filters).joined(separator: ", ")
      log.warning(
        "No reply sent: the response topic is not allowed",
        ["topic": Excerpt.of(topic), "allowed": allowed]
      )
    }
    return false
  }

  /// Whether the log has not named a topic yet; long ones count by how they begin.
  private mutating func isNew(_ topic: String) -> Bool {
    named.count < Self.namedLimit && named.insert(Excerpt.of(topic).hashValue).inserted
  }
}
