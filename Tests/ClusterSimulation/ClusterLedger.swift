// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What clients were promised, and what devices got, over all gateways of a cluster.
struct ClusterLedger {
  struct Key {
    /// The newest value that was answered `accepted`, and was not said to be in memory only.
    var durable = 0
    /// The newest value that was said to be replaced by a newer one.
    var superseded = 0
    /// The newest value that was rejected after a newer one had replaced the accepted one.
    var rejected = 0
    /// The newest accepted value that was rejected later, together with the one that had replaced
    /// it.
    var withdrawn = 0
    /// The newest value that the device got.
    var delivered = 0
    /// When a client sent each value that no newer one has followed.
    var receivedAt: [Int: Moment] = [:]
    var duplicates = 0
  }

  private(set) var keys: [Key]
  private(set) var accepted = 0
  private(set) var deliveries = 0
  private let policies: [Policy]

  /// - Parameter policies: Of each key.
  init(_ policies: [Policy]) {
    self.policies = policies
    keys = Array(repeating: Key(), count: policies.count)
  }

  var duplicates: Int { keys.reduce(0) { $0 + $1.duplicates } }

  mutating func received(_ order: Int, of key: Int, at now: Moment) {
    keys[key].receivedAt[order] = now
  }

  mutating func accepted(_ order: Int, of key: Int) {
    accepted += 1
    keys[key].durable = max(keys[key].durable, order)
  }

  mutating func superseded(_ order: Int, of key: Int) {
    keys[key].superseded = max(keys[key].superseded, order)
  }

  mutating func rejected(_ order: Int, of key: Int) {
    keys[key].rejected = max(keys[key].rejected, order)
    if order <= keys[key].durable { keys[key].withdrawn = max(keys[key].withdrawn, order) }
  }

  /// A gateway sends a value; the result is the rule that this violates.
  func sent(_ order: Int, of key: Int, at now: Moment) -> String? {
    guard let since = keys[key].receivedAt[order] else { return "nobody has set \(order)" }
    if order == keys[key].delivered { return nil }  // It is sent again: no receipt has come.
    if since.duration(to: now) >= policies[key].delay { return nil }
    // A key that never rests is sent after its longest wait.
    let first = keys[key].receivedAt.filter { $0.key <= order }.values.min() ?? since
    if let limit = policies[key].maxWait, first.duration(to: now) >= limit { return nil }
    return "\(order) leaves before its quiet period"
  }

  /// A device gets a value; the result is the rule that this violates.
  mutating func delivered(_ order: Int, of key: Int) -> String? {
    deliveries += 1
    if order < keys[key].delivered { return "\(order) follows the newer \(keys[key].delivered)" }
    if order == keys[key].delivered { keys[key].duplicates += 1 }
    keys[key].delivered = order
    keys[key].receivedAt = keys[key].receivedAt.filter { $0.key >= order }
    return nil
  }

  /// The keys whose newest accepted value no device got, and no newer one either.
  var lost: [(key: Int, order: Int)] {
    keys.indices.filter { keys[$0].delivered < keys[$0].durable }.map { ($0, keys[$0].durable) }
  }
}
