// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// The world outside: the link to the broker, and the devices behind it.
struct World {
  struct SimulatedDevice {
    var isPowered = true
    /// Whether it ignores messages.
    var isDeaf = false
    /// The messages that the broker queues for it while it is offline, and the last delivered one.
    var backlog: [Agenda.Message] = []
    var recent: [Agenda.Message] = []
    /// Messages to and from it keep their order.
    var nextDelivery = Moment.zero
    var nextReport = Moment.zero
  }

  var devices: [SimulatedDevice]
  /// The actual value of each property.
  var values: [Value?]
  /// The retained report of each property.
  var retained: [JSONValue?]
  var availability: [[Bool]]
  /// The number of the connection; events of earlier ones are void.
  var generation = 0
  /// Messages to the broker keep their order, as on a TCP connection.
  var nextArrival = Moment.zero
  /// Whether nothing gets through and the gateway has not detected it.
  var isHalfOpen = false
  /// Whether the second broker, which only routes use, is connected.
  var isFarConnected = false
  /// The last publish that was delivered to each property, by the order of publishing.
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
