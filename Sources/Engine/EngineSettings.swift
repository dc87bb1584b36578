// Settle
// SPDX-License-Identifier: Apache-2.0

/// A cluster, and the servers of its engine.
package struct EngineSettings: Hashable, Sendable {
  /// The cluster's name.
  package var cluster: String
  package var connection: NATSSettings
  /// The same for the life of the cluster.
  package var partitions = 64
  /// How many servers keep each value.
  package var replicas = 3
  /// How long an answer is waited for.
  package var patience: Duration = .seconds(2)

  package init(cluster: String, connection: NATSSettings) {
    self.cluster = cluster
    self.connection = connection
  }

  /// The names of streams and subjects.
  var records: String { "settle-\(cluster)-records" }
  var log: String { "settle-\(cluster)-log" }
  var prefix: String { "settle.\(cluster)" }
  /// The subject of a record; `>` for all of them.
  func record(_ token: String) -> String { "\(prefix).records.\(token)" }
}

/// Why a gateway cannot be a member of the cluster.
package struct EngineRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = "cluster: \(description)" }
}
