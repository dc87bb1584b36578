// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import LastOut

/// The retained topics of the gateway's own, as the broker keeps them and as they should be.
struct RetainedTopics {
  typealias Item = StatePublisher.Item

  /// What a topic should show.
  struct Expectation {
    var item: Item
    var text: String
    /// Whether there is nothing to show, so that the topic need not exist.
    var isBlank: Bool
  }

  /// The shortest time between two messages on one topic.
  static let rest = Duration.milliseconds(100)

  /// What the broker keeps of topics that this process has published.
  private var kept: [Item: String] = [:]
  /// What was published last on this connection, and when.
  private var published: [Item: (text: String, at: Moment)] = [:]
  /// Since when topics show something else than they should.
  private var staleSince: [Item: Moment] = [:]

  /// Records a published message; returns the violated rule, if any.
  ///
  /// `isReceived`: the connection works. `isThrottled`: the gateway does not shut down.
  mutating func published(
    _ item: Item,
    _ text: String,
    isReceived: Bool,
    isThrottled: Bool,
    at now: Moment
  ) -> String? {
    let last = published[item]?.at
    published[item] = (text, now)
    if isReceived { kept[item] = text }
    if isThrottled, let last, last.duration(to: now) < Self.rest {
      return "\(item) is published twice within \(Self.rest)"
    }
    return nil
  }

  /// Records a new connection; a broker that was restarted may have lost what it kept.
  mutating func connected(hasLostAll: Bool) {
    published = [:]
    staleSince = [:]
    if hasLostAll { kept = [:] }
  }

  /// Records a restart of the gateway; it does not know what the last process published.
  mutating func restart() {
    published = [:]
    staleSince = [:]
    kept = [:]
  }

  /// Whether the broker keeps something on a topic that has not been published on this connection.
  func isKept(_ item: Item) -> Bool { published[item] == nil && kept[item]?.isEmpty == false }

  /// A topic that shows something else for longer than the rest between two messages, if any; call
  /// it when everything that is due has been published.
  mutating func stale(_ expectations: [Expectation], at now: Moment) -> String? {
    for expected in expectations {
      let shown = published[expected.item]?.text ?? (expected.isBlank ? kept[expected.item] : nil)
      if shown ?? "" == expected.text || expected.isBlank && shown?.isEmpty ?? true {
        staleSince[expected.item] = nil
        continue
      }
      guard let since = staleSince[expected.item] else {
        staleSince[expected.item] = now
        continue
      }
      let last = published[expected.item]?.at ?? since
      if max(since, last).duration(to: now) < Self.rest { continue }
      return "\(expected.item) shows '\(shown ?? "")', not '\(expected.text)'"
    }
    return nil
  }
}
