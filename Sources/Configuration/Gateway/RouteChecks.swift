// Settle
// SPDX-License-Identifier: Apache-2.0

import MQTTTopics
import Routing

/// Finds routes that would feed each other or the gateway itself.
struct RouteChecks {
  let settings: GatewayConfiguration
  let problems: Problems

  /// Reports every route whose output is some route's input, or that meets the gateway's topics.
  func check(_ places: [RoutePlaces]) {
    for (number, route) in settings.routes.enumerated() {
      for (other, candidate) in settings.routes.enumerated()
      where isSameBroker(route.to.broker, candidate.from.broker)
        && Topic.overlaps(route.to.topic, candidate.from.topic)
      {
        let name = number == other ? "its own input" : "the input"
        problems.add(
          places[number].to,
          "to: '\(route.to.topic)' feeds \(name) '\(candidate.from.topic)' at "
            + "\(places[other].from.text), which would loop"
        )
      }
      checkOwnTopics(route, places[number])
    }
  }

  private func checkOwnTopics(_ route: RouteConfiguration, _ places: RoutePlaces) {
    let filters = SettingsRules.commandFilters(baseTopic: settings.baseTopic)
    for (key, end, place) in [("from", route.from, places.from), ("to", route.to, places.to)]
    where isSameBroker(end.broker, nil) {
      guard let met = filters.first(where: { Topic.overlaps($0, end.topic) }) else { continue }
      problems.add(
        place,
        "\(key): '\(end.topic)' meets the gateway's own commands on '\(met)'"
      )
    }
  }

  /// Two names may lead to one broker.
  private func isSameBroker(_ left: String?, _ right: String?) -> Bool {
    left == right || endpoint(left) == endpoint(right)
  }

  private func endpoint(_ name: String?) -> BrokerConfiguration.Endpoint? {
    guard let name else { return settings.mqtt.endpoint }
    return settings.brokers[name]?.endpoint
  }
}
