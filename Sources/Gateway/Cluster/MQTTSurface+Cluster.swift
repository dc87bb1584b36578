// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Configuration
import GatewayCore
import LastOut
import MQTT
import Routing

/// What else belongs to a partition: routes, announcements, and the status of the cluster.
extension MQTTSurface {
  /// This member drives a partition from now on, or not any more.
  func ownershipChanged(of partition: Partition, isDriven: Bool) {
    guard let places = context.places else { return }
    for (number, route) in context.configuration.routes.enumerated()
    where places.partition(ofName: route.clusterName) == partition {
      wills.setActive(isDriven, route: number)
      guard let broker = route.from.broker,
        let link = links.first(where: { $0.name == broker })
      else { continue }
      if isDriven {
        link.client.subscribe([ClusterSubscriptions.subscription(of: route)])
      } else if !drivesRoute(from: route.from) {
        link.client.unsubscribe([route.from.topic])
      }
    }
    guard isDriven else { return }
    discovery?.announce(places.devices(of: partition))
    if partition == Partition(0) { publishStatus() }
  }

  /// The session of a partition was made: the broker sends what it retains of its devices.
  func sessionConnected(_ partition: Partition, at now: Moment) {
    guard let session = sessions?[partition] else { return }
    context.core.retainedMessagesFollow(of: context.places?.devices(of: partition) ?? [], at: now)
    sendMarker(on: session.link, of: partition)
  }

  /// Whether this member drives a route with this input.
  private func drivesRoute(from end: RouteConfiguration.End) -> Bool {
    context.configuration.routes.contains { route in
      route.from == end
        && context.places?.drives(
          Partition(of: route.clusterName, count: context.places?.count ?? 1)
        )
          ?? false
    }
  }
}
