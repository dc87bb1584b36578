// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import MQTTTopics

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

  /// The filters of allowed topics, for messages.
  var description: String { (["\(prefix)#"] + filters).joined(separator: ", ") }

  func contains(_ topic: String) -> Bool {
    if topic.utf8.count > prefix.utf8.count, topic.utf8.starts(with: prefix.utf8) { return true }
    return filters.contains { Topic.matches(filter: $0, name: topic) }
  }

  /// Records that `topic` gets no reply; `true` if the log should name it.
  mutating func recordRefusal(of topic: String) -> Bool {
    named.count < Self.namedLimit && named.insert(topic.hashValue).inserted
  }
}
