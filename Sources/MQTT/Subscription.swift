// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Devices

/// A topic filter with its options.
package struct Subscription: Hashable, Sendable {
  package var filter: String
  package var qos: Int
  /// Whether retained messages are delivered (not on command and route topics).
  package var wantsRetained: Bool
  package var noLocal: Bool
  /// Whether messages keep the retain flag they were published with (MQTT 5), as a bridge needs;
  /// otherwise the flag means that a message is older than the subscription.
  package var keepsRetainFlag: Bool
  package init(
    filter: String,
    qos: Int = 1,
    wantsRetained: Bool,
    noLocal: Bool = false,
    keepsRetainFlag: Bool = false
  ) {
    self.filter = filter
    self.qos = qos
    self.wantsRetained = wantsRetained
    self.noLocal = noLocal
    self.keepsRetainFlag = keepsRetainFlag
  }
}

extension Subscription {
  /// The filters of one SUBSCRIBE, and the options that they share.
  struct Packet: Hashable, Sendable {
    let filters: [String]
    let qos: Int32
    let options: Int32

    /// The maximum number of filters in one SUBSCRIBE.
    static let mostFilters = 100

    /// The packets that subscribe to all of `subscriptions`.
    static func all(
      for subscriptions: [Subscription],
      version: MQTTConfiguration.ProtocolVersion
    ) -> [Packet] {
      var packets: [Packet] = []
      let groups = Dictionary(grouping: subscriptions) { [$0.wireQoS, $0.options(version)] }
      for members in groups.values {
        var rest = members.map(\.filter)[...]
        while let first = members.first, !rest.isEmpty {
          let filters = Array(rest.prefix(mostFilters))
          rest = rest.dropFirst(filters.count)
          packets.append(
            Packet(filters: filters, qos: first.wireQoS, options: first.options(version))
          )
        }
      }
      return packets
    }
  }

  private var wireQoS: Int32 { Int32(min(max(qos, 0), 2)) }

  /// The subscription options of MQTT 5; 3.1.1 has none.
  private func options(_ version: MQTTConfiguration.ProtocolVersion) -> Int32 {
    guard version == .v5 else { return 0 }
    var options: UInt32 = 0
    if noLocal { options |= MQTT_SUB_OPT_NO_LOCAL.rawValue }
    if keepsRetainFlag { options |= MQTT_SUB_OPT_RETAIN_AS_PUBLISHED.rawValue }
    if !wantsRetained { options |= MQTT_SUB_OPT_SEND_RETAIN_NEVER.rawValue }
    return Int32(options)
  }
}
