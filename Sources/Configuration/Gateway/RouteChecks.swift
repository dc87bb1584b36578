// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Routing

/// Finds routes whose output reaches a route's input or the gateway's own topics.
struct RouteChecks {
  let settings: GatewayConfiguration
  let problems: Problems

  /// Reports every such route.
  func check(_ positions: [RoutePositions]) {
    let inputs = FilterIndex(settings.routes.map(\.from.topic))
    for (number, route) in settings.routes.enumerated() {
      for other in inputs.overlapping(route.to.topic) {
        let candidate = settings.routes[other]
        guard isSameBroker(route.to.broker, candidate.from.broker) else { continue }
        let name = number == other ? "its own input" : "the input"
        problems.add(
          positions[number].to,
          "to: '\(route.to.topic)' feeds \(name) '\(candidate.from.topic)' at "
            + "\(positions[other].from.text), which would loop"
        )
      }
      checkOwnTopics(route, positions[number])
    }
  }

  private func checkOwnTopics(_ route: RouteConfiguration, _ positions: RoutePositions) {
    let filters = SettingsRules.commandFilters(baseTopic: settings.baseTopic)
    for (key, end, position) in [
      ("from", route.from, positions.from), ("to", route.to, positions.to),
    ]
    where isSameBroker(end.broker, nil) {
      guard let own = filters.first(where: { Topic.overlaps($0, end.topic) }) else { continue }
      problems.add(
        position,
        "\(key): '\(end.topic)' overlaps the gateway's own commands on '\(own)'"
      )
    }
  }

  /// Compares endpoints, because two names can refer to one broker.
  private func isSameBroker(_ left: String?, _ right: String?) -> Bool {
    left == right || endpoints(left).contains { endpoints(right).contains($0) }
  }

  private func endpoints(_ name: String?) -> [BrokerConfiguration.Endpoint] {
    guard let name else { return settings.mqtt.endpoints }
    return settings.brokers[name]?.endpoints ?? []
  }
}
