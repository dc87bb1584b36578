// Settle
// SPDX-License-Identifier: Apache-2.0

package import Routing

/// The gateway's configuration file, complete and checked.
package struct GatewayConfiguration: Hashable, Sendable {
  package var mqtt = BrokerConfiguration()
  package var baseTopic = "settle"
  /// Where `run` makes the control socket; `nil`: the default places.
  package var socket: String?
  /// How keys settle by type.
  package var policies = PolicyTable()
  package var ttl: Duration = .seconds(60)
  package var devicesDirectory = "./devices"
  package var http: HTTPConfiguration?
  package var journal: JournalConfiguration?
  package var shutdownTimeout: Duration = .seconds(10)
  package var lanes: [String: LaneConfiguration] = [:]
  package var brokers: [String: BrokerConfiguration] = [:]
  package var routes: [RouteConfiguration] = []
  package var inputs: [InputConfiguration] = []
  package var discovery: DiscoveryConfiguration?
  package var limits = Limits()
  package init() {}
}
