// Settle
// SPDX-License-Identifier: Apache-2.0

package import MQTT

/// What the test of a broker has found.
package struct BrokerFindings: Hashable, Sendable {
  /// The version of the protocol that the broker speaks.
  package var version = MQTTConfiguration.ProtocolVersion.v5
  /// What the broker calls itself, such as `mosquitto version 2.0.11`; `nil` if it does not say.
  package var software: String?
  /// Topic filters that the client must not subscribe to, with the broker's reason.
  package var refusedFilters: [String: String] = [:]
  /// Why the client must not publish; `nil` if it may, or if the broker does not say.
  package var publishRefusal: String?
  /// Whether a message to a topic below the base topic came back.
  package var hearsItself = false
  /// Whether a gateway with the same base topic is online.
  package var hasGateway = false

  package init() {}

  /// What the client may not do below the base topic; empty if it may do everything.
  package func missingPermissions(baseTopic: String) -> [String] {
    var missing = refusedFilters.sorted { $0.key < $1.key }.map {
      "may not subscribe to \($0.key): \($0.value)"
    }
    if let publishRefusal {
      missing.append("may not publish below \(baseTopic)/: \(publishRefusal)")
    } else if !hearsItself, missing.isEmpty {
      missing.append(
        "a message below \(baseTopic)/ does not come back, so it may not publish or not receive there"
      )
    }
    return missing
  }
}

/// Why a broker cannot be used.
package struct BrokerFailure: Error, Hashable, Sendable {
  package var reason: String
  /// What to change, if that is known.
  package var advice: String?
  /// Whether another user name or password may help.
  package var isAboutCredentials = false
  /// Whether the time for an answer has passed.
  package var isTimeout = false

  package init(_ reason: String, advice: String? = nil) {
    self.reason = reason
    self.advice = advice
  }
}
