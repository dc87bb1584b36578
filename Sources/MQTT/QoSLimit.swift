// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations

/// The highest quality of service that the broker supports.
///
/// A broker that supports only QoS 0 gets everything at QoS 0: nothing is acknowledged then.
struct QoSLimit: Sendable {
  private(set) var maximum = 2
  private var isLogged = false

  /// Records what CONNACK says; `nil` when it sets no limit.
  mutating func accepted(maximum: Int?) {
    set(maximum ?? 2)
  }

  /// Records a refused CONNECT; the last will has the quality of service that was refused.
  mutating func refused(connackCode code: Int32) {
    if code == ReasonCode.qosNotSupported { set(0) }
  }

  /// The quality of service to publish with; logs once that it is lower than `wanted`.
  mutating func lowered(_ wanted: Int, _ log: Logger) -> Int {
    guard wanted > maximum, (0...2).contains(wanted) else { return wanted }
    if !isLogged {
      isLogged = true
      log.warning(
        "The broker does not support this quality of service; a lower one is used",
        ["wanted": String(wanted), "used": String(maximum)]
      )
    }
    return maximum
  }

  /// The configuration for the next attempt: a last will that the broker accepts.
  func limit(_ configuration: MQTTConfiguration) -> MQTTConfiguration {
    var configuration = configuration
    if let will = configuration.will { configuration.will?.qos = min(will.qos, maximum) }
    return configuration
  }

  private mutating func set(_ maximum: Int) {
    if maximum != self.maximum { isLogged = false }
    self.maximum = maximum
  }
}
