// Settle
// SPDX-License-Identifier: Apache-2.0

import MQTTTopics

/// The subscriptions of a client: each filter once, in the order of subscribing.
///
/// Filters without a wildcard are looked up by their text, because there may be one state topic per
/// property: tens of thousands. Only filters with wildcards are matched one by one.
struct SubscriptionTable {
  private(set) var all: [Subscription] = []
  /// The index of each filter in `all`.
  private var places: [String: Int] = [:]
  /// The indices of filters with wildcards.
  private var wild: [Int] = []

  /// Adds a subscription; one with the same filter is replaced in its place.
  mutating func put(_ subscription: Subscription) {
    let filter = subscription.filter
    if let place = places[filter] {
      all[place] = subscription
    } else {
      append(subscription)
    }
  }

  /// Removes filters; returns those that existed, in the given order.
  ///
  /// Linear in the number of subscriptions.
  mutating func remove(_ filters: [String]) -> [String] {
    let known = filters.filter { places[$0] != nil }
    guard !known.isEmpty else { return [] }
    let leaving = Set(known)
    let staying = all.filter { !leaving.contains($0.filter) }
    self = SubscriptionTable()
    for subscription in staying { append(subscription) }
    return known
  }

  /// Whether any subscription that matches `topic` satisfies `isChosen`.
  func contains(
    matching topic: String,
    where isChosen: (Subscription) -> Bool
  ) -> Bool {
    if let place = places[topic], isChosen(all[place]) { return true }
    return wild.contains {
      isChosen(all[$0]) && Topic.matches(filter: all[$0].filter, name: topic)
    }
  }

  /// Whether a subscription that matches `topic` receives retained messages, or keeps the retain
  /// flag.
  func wantsRetained(_ topic: String, _ version: MQTTConfiguration.ProtocolVersion) -> Bool {
    contains(matching: topic) { $0.wantsRetained || $0.keepsRetainFlag && version == .v5 }
  }

  private mutating func append(_ subscription: Subscription) {
    places[subscription.filter] = all.count
    if Topic.hasWildcard(subscription.filter) { wild.append(all.count) }
    all.append(subscription)
  }
}
