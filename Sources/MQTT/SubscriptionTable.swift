// Settle
// SPDX-License-Identifier: Apache-2.0

import MQTTTopics

/// What a client is subscribed to: each filter once, in the order of subscribing.
///
/// A house has one state topic per property, tens of thousands of filters without a wildcard; those
/// are found by their text, and only filters with wildcards are tried one by one.
struct SubscriptionTable {
  private(set) var all: [MQTTClient.Subscription] = []
  /// Where in `all` a filter is.
  private var places: [String: Int] = [:]
  /// The places of filters with wildcards.
  private var wild: [Int] = []

  /// Adds a subscription; a filter already there is replaced where it stands.
  mutating func put(_ subscription: MQTTClient.Subscription) {
    let filter = subscription.filter
    if let place = places[filter] {
      all[place] = subscription
    } else {
      append(subscription)
    }
  }

  /// Takes filters out; returns those that were there, in the order given.
  ///
  /// Costs one pass over all subscriptions.
  mutating func remove(_ filters: [String]) -> [String] {
    let known = filters.filter { places[$0] != nil }
    guard !known.isEmpty else { return [] }
    let leaving = Set(known)
    let staying = all.filter { !leaving.contains($0.filter) }
    self = SubscriptionTable()
    for subscription in staying { append(subscription) }
    return known
  }

  /// Whether some subscription that matches `topic` is one that `isChosen`.
  func contains(
    matching topic: String,
    where isChosen: (MQTTClient.Subscription) -> Bool
  ) -> Bool {
    if let place = places[topic], isChosen(all[place]) { return true }
    return wild.contains {
      isChosen(all[$0]) && Topic.matches(filter: all[$0].filter, name: topic)
    }
  }

  private mutating func append(_ subscription: MQTTClient.Subscription) {
    places[subscription.filter] = all.count
    if Topic.hasWildcard(subscription.filter) { wild.append(all.count) }
    all.append(subscription)
  }
}
