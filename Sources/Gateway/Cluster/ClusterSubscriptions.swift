// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Configuration
import Devices
import HomeAssistant
import MQTT
import Routing

/// What the sessions of partitions subscribe to.
///
/// A session has one filter for everything about a device below the base topic, and one for each
/// topic on which the device reports itself. With filters for all devices at once the broker would
/// hand each message to every session.
struct ClusterSubscriptions: Sendable {
  /// The filters of each partition.
  private var filters: [[Subscription]]

  init(
    _ configuration: GatewayConfiguration,
    _ registry: Registry,
    partitions count: Int
  ) {
    filters = Array(repeating: [], count: count)
    let base = configuration.baseTopic
    for device in registry.deviceNumbers {
      let id = registry.id(ofDevice: device)
      let place = Partition(of: id, count: count).number
      filters[place].append(.init(filter: "\(base)/\(id)/#", wantsRetained: false, noLocal: true))
      addReports(ofDevice: device, in: registry, to: place)
    }
    for place in filters.indices {
      let marker = TopicMap.marker(below: base, of: Partition(place))
      filters[place].append(.init(filter: marker, wantsRetained: false))
    }
    for scene in registry.scenes {
      let place = Self.partition(ofScene: scene.id, count: count).number
      filters[place].append(
        .init(filter: "\(base)/scene/\(scene.id)/set", wantsRetained: false, noLocal: true)
      )
    }
    addInputs(configuration.inputs, registry)
    for route in configuration.routes where route.from.broker == nil {
      let place = Partition(of: route.clusterName, count: count).number
      filters[place].append(Subscription(to: route))
    }
    for place in filters.indices { filters[place] = filters[place].withoutRepetition }
  }

  subscript(partition: Partition) -> [Subscription] { filters[partition.number] }

  /// The partition whose session receives `settle/scene/<id>/set`.
  static func partition(ofScene id: String, count: Int) -> Partition {
    Partition(of: "scene/\(id)", count: count)
  }

  private mutating func addReports(ofDevice device: Int, in registry: Registry, to place: Int) {
    let definition = registry.definition(ofDevice: device).pattern
    let states = definition.properties.flatMap { $0.states.map(\.topic) }
    for topic in states + definition.availability.map(\.topic) {
      filters[place].append(
        .init(filter: registry.filled(topic, ofDevice: device), wantsRetained: true)
      )
    }
    if let topic = definition.awake?.topic {
      filters[place].append(
        .init(filter: registry.filled(topic, ofDevice: device), wantsRetained: false)
      )
    }
  }

  /// Each session of a device that an input changes receives it.
  private mutating func addInputs(_ inputs: [InputConfiguration], _ registry: Registry) {
    for input in inputs {
      var places: Set<Int> = []
      for change in input.map.values {
        let id = String(change.key.prefix { $0 != "/" })
        places.insert(Partition(of: id, count: filters.count).number)
      }
      for place in places {
        filters[place].append(.init(filter: input.topic, wantsRetained: false))
      }
    }
  }
}

extension RouteConfiguration {
  /// What a cluster calculates the partition of a route from.
  var clusterName: String { "\(from.broker ?? "")/\(from.topic)" }
}
