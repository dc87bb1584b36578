// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices

/// The subscriptions of a client: each filter once, in the order of subscribing.
///
/// Filters without a wildcard are looked up by their text, because there may be one state topic per
/// property: tens of thousands. Only filters with wildcards are matched one by one.
struct SubscriptionTable {
  /// In the order of subscribing; `nil` where one was removed.
  private var entries: [Subscription?] = []
  /// The index of each filter in `entries`.
  private var places: [String: Int] = [:]
  /// The indices of filters with wildcards.
  private var wild: [Int] = []

  var all: [Subscription] { entries.compactMap { $0 } }

  /// Adds a subscription; one with the same filter is replaced in its place.
  mutating func put(_ subscription: Subscription) {
    let filter = subscription.filter
    if let place = places[filter] {
      entries[place] = subscription
    } else {
      append(subscription)
    }
  }

  /// Removes filters; returns those that existed, in the given order.
  ///
  /// The table is rebuilt once half of it was removed.
  mutating func remove(_ filters: [String]) -> [String] {
    let known = filters.filter { filter in
      guard let place = places.removeValue(forKey: filter) else { return false }
      entries[place] = nil
      return true
    }
    if places.count < entries.count / 2 {
      let staying = all
      self = SubscriptionTable()
      for subscription in staying { append(subscription) }
    }
    return known
  }

  /// Whether any subscription that matches `topic` satisfies `isChosen`.
  func contains(
    matching topic: String,
    where isChosen: (Subscription) -> Bool
  ) -> Bool {
    if let place = places[topic], let exact = entries[place], isChosen(exact) { return true }
    return wild.contains {
      guard let entry = entries[$0] else { return false }
      return isChosen(entry) && Topic.matches(filter: entry.filter, name: topic)
    }
  }

  /// Whether a subscription that matches `topic` receives retained messages, or keeps the retain
  /// flag.
  func wantsRetained(_ topic: String, _ version: MQTTConfiguration.ProtocolVersion) -> Bool {
    contains(matching: topic) { $0.wantsRetained || $0.keepsRetainFlag && version == .v5 }
  }

  private mutating func append(_ subscription: Subscription) {
    places[subscription.filter] = entries.count
    if Topic.hasWildcard(subscription.filter) { wild.append(entries.count) }
    entries.append(subscription)
  }
}
