// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What clients were promised, and what devices got, over all gateways of a cluster.
struct ClusterLedger {
  struct Key {
    /// The newest change that a gateway has executed.
    var executed = 0
    /// The newest value that was answered `accepted`, and was not said to be in memory only.
    var durable = 0
    /// The newest value that need not arrive: something later has ended it.
    var ended = 0
    /// The newest value that may leave before its quiet period has passed.
    var hurried = 0
    /// The newest value that the device got.
    var delivered = 0
    /// The newest stop that the device got before it had waited as long as it does at most: what it
    /// ends is not stored any more, unless nothing can be stored.
    var prompt = 0
    /// The newest of these that was answered `accepted` too.
    var stopped = 0
    /// When a client sent each value that no newer one has followed.
    var receivedAt: [Int: Moment] = [:]
    /// The orders of values that were numbered before they were executed.
    var orders: [Int: Int] = [:]
    var duplicates = 0
    /// Whether the engine has forgotten what became of the key: an older value may come back.
    var isForgotten = false
  }

  private(set) var keys: [Key]
  private(set) var accepted = 0
  private(set) var deliveries = 0
  private let policies: [Policy]
  /// The key that stops what each key does.
  private let stops: [Int?]

  init(_ registry: Registry) {
    let properties = registry.properties
    policies = properties.map(\.property.policy)
    keys = Array(repeating: Key(), count: properties.count)
    stops = properties.indices.map { key in
      properties.indices.first { stop in
        properties[stop].device == properties[key].device
          && properties[stop].property.ends.contains(properties[key].property.id)
      }
    }
  }

  var duplicates: Int { keys.reduce(0) { $0 + $1.duplicates } }

  // MARK: - What clients ask

  /// A gateway executes a change of a key that carries `value`, as the one with this order.
  mutating func executed(_ order: Int, as value: Int, of key: Int, isHurried: Bool, at now: Moment)
  {
    keys[key].executed = order
    if value != order { keys[key].orders[value] = order }
    keys[key].receivedAt[order] = now
    if isHurried { keys[key].hurried = order }
  }

  /// What waits of a key may leave at once.
  mutating func flushed(_ key: Int) { keys[key].hurried = keys[key].executed }

  /// What waits of a key need not arrive any more.
  mutating func ended(_ key: Int) { keys[key].ended = keys[key].executed }

  /// A device is told to stop: what waits for it need not arrive any more.
  mutating func stopped(by stop: Int) {
    for key in keys.indices where stops[key] == stop { ended(key) }
  }

  // MARK: - What gateways say

  /// The order of a value.
  func order(of value: Int, of key: Int) -> Int { keys[key].orders[value] ?? value }

  mutating func accepted(_ order: Int, of key: Int) {
    accepted += 1
    keys[key].durable = max(keys[key].durable, order)
    if order == keys[key].prompt { keys[key].stopped = order }
  }

  mutating func cancelled(_ order: Int, of key: Int) {
    keys[key].ended = max(keys[key].ended, order)
  }

  /// Whether a value for the member of a group is stored, or need not be any more.
  func holds(_ value: Int, of key: Int) -> Bool {
    let order = keys[key].orders[value] ?? Int.max
    return order <= max(keys[key].durable, keys[key].ended)
  }

  /// A gateway sends a value; the result is the rule that this violates.
  func sent(_ order: Int, of key: Int, at now: Moment) -> String? {
    let state = keys[key]
    guard let since = state.receivedAt[order] else {
      return state.isForgotten ? nil : "nobody has set \(order)"
    }
    // It is sent again, no receipt has come; or it is sent at once.
    if order == state.delivered || order <= state.hurried || state.isForgotten { return nil }
    if since.duration(to: now) >= policies[key].delay { return nil }
    // A key that never rests is sent after its longest wait.
    let first = state.receivedAt.filter { $0.key <= order }.values.min() ?? since
    if let limit = policies[key].maxWait, first.duration(to: now) >= limit { return nil }
    return "\(order) leaves before its quiet period"
  }

  // MARK: - What devices get

  /// A device gets a value; the result is the rule that this violates.
  mutating func delivered(_ order: Int, of key: Int) -> String? {
    deliveries += 1
    defer {
      if order == keys[key].delivered { keys[key].duplicates += 1 }
      keys[key].delivered = order
      keys[key].receivedAt = keys[key].receivedAt.filter { $0.key >= order }
    }
    if keys[key].isForgotten { return nil }
    if order < keys[key].delivered { return "\(order) follows the newer \(keys[key].delivered)" }
    if let stop = stops[key].map({ keys[$0].stopped }), order < stop {
      return "\(order) follows the stop \(stop)"
    }
    return nil
  }

  /// A device gets the stop with this order, or a later one.
  mutating func stopDelivered(_ order: Int, of key: Int, at now: Moment) {
    deliveries += 1
    // The first one that waited counts.
    let waiting = keys[key].receivedAt.filter { $0.key > keys[key].delivered && $0.key <= order }
    keys[key].delivered = max(keys[key].delivered, order)
    if let since = waiting.values.min(), since.duration(to: now) < Self.patience {
      keys[key].prompt = order
      if order == keys[key].durable { keys[key].stopped = order }
    }
    keys[key].receivedAt = keys[key].receivedAt.filter { $0.key >= order }
  }

  /// How long a stop waits at most until what it ends is not stored any more.
  private static let patience = Duration.milliseconds(250)

  // MARK: - The engine

  /// The engine has forgotten entries of these keys, and their owner of then has ended.
  mutating func forgotten(_ key: Int) {
    keys[key].ended = keys[key].executed
    keys[key].isForgotten = true
  }

  /// The keys whose newest accepted value no device got, and no newer one either.
  ///
  /// A stop is not owed any more once its device was told something later.
  var lost: [(key: Int, order: Int)] {
    keys.indices.filter { key in
      let state = keys[key]
      guard state.delivered < state.durable, state.ended < state.durable else { return false }
      return !keys.indices.contains { stops[$0] == key && keys[$0].executed > state.durable }
    }.map { ($0, keys[$0].durable) }
  }
}
