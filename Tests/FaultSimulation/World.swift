// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut

/// The world outside: the link to the broker, and the devices behind it.
struct World {
  struct SimulatedDevice {
    var isPowered = true
    /// Takes messages and does nothing with them.
    var isDeaf = false
    /// What the broker keeps for it while it is away, and the last it was handed.
    var backlog: [Agenda.Letter] = []
    var recent: [Agenda.Letter] = []
    /// Messages to and from it keep their order.
    var nextDelivery = Moment.zero
    var nextReport = Moment.zero
  }

  var devices: [SimulatedDevice]
  /// What each property shows.
  var values: [Value?]
  /// What the broker keeps as the last report of each property.
  var retained: [JSONValue?]
  var availability: [[Bool]]
  /// Counts connections; what belongs to an earlier one is void.
  var generation = 0
  /// Nothing gets through, though the gateway has not noticed.
  var isHalfOpen = false
  /// Whether the second broker, which only routes use, is connected.
  var isFarConnected = false
  /// The publish that each property was handed last, by the order of publishing.
  var lastDelivered: [Int]
  /// The last publish of each property that the broker acknowledged.
  var lastAcknowledged: [Int]

  init(_ registry: Registry) {
    let keys = registry.properties.count
    devices = registry.devices.map { _ in SimulatedDevice() }
    values = Array(repeating: nil, count: keys)
    retained = Array(repeating: nil, count: keys)
    availability = registry.devices.map { Array(repeating: true, count: $0.availability.count) }
    lastDelivered = Array(repeating: 0, count: keys)
    lastAcknowledged = Array(repeating: 0, count: keys)
  }
}
