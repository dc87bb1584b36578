// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import MQTT
import Values

/// The host's part of a reload, in steps of bounded size.
///
/// First a new topic map is built beside the one in use. Then the core continues with the new
/// definitions while subscriptions follow. At last the memory of the old map is freed.
final class ReloadProgress {
  enum Phase {
    /// The new topic map is being built; nothing has changed yet.
    case mapping
    /// The core prepares the new definitions.
    case preparing
    /// The new definitions count; subscriptions follow.
    case subscribing
    /// The reload has finished; memory is being freed.
    case freeing
  }

  /// How many topics, subscriptions or requests one step handles at most.
  static let limit = 1000

  let prepared: PreparedReload
  var phase = Phase.mapping
  /// The new map until the definitions are replaced, then the old one.
  var topics: TopicMap
  /// Keeps the old definitions until everything else has finished with them.
  let old: Registry
  var added: ArraySlice<Subscription>
  var removed: ArraySlice<String>
  /// Keys whose states the gateway asks for.
  var requests: ArraySlice<KeyIndex>
  /// Whether the core has finished.
  var isCoreDone = false
  /// When it began.
  let startedAt: Moment
  /// Whether messages wait for devices that it has added.
  var hasMessages = false

  init(_ prepared: PreparedReload, replacing old: Registry, at now: Moment = .zero) {
    startedAt = now
    self.prepared = prepared
    self.old = old
    topics = TopicMap(
      configuration: prepared.configuration,
      subscriptions: prepared.subscriptions
    )
    added = prepared.added[...]
    removed = prepared.removed[...]
    requests = prepared.requests[...]
  }

  /// Builds some of the new map; `true` once it is complete.
  func buildMap() -> Bool { topics.add(Self.limit / 4, of: prepared.registry) }

  /// Whether nothing is left to subscribe to, to give up or to ask for.
  var isSubscribed: Bool { added.isEmpty && removed.isEmpty && requests.isEmpty }

  /// The connection was made or ended: all states of the topics in use are requested on each
  /// connection.
  func connectionChanged() { if phase == .subscribing { requests = [] } }

  /// Frees some of the old map; `true` once nothing is left.
  func free() -> Bool { topics.free(Self.limit * 10) }
}

extension ArraySlice {
  /// Removes and returns the first elements, `limit` of them at most.
  mutating func popFirst(_ limit: Int) -> ArraySlice {
    let first = prefix(limit)
    self = dropFirst(limit)
    return first
  }
}
