// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// The gateway's configuration file, complete and checked.
package struct GatewayConfiguration: Hashable, Sendable {
  package var mqtt = BrokerConfiguration()
  package var baseTopic = "settle"
  /// `nil`: the default places.
  package var socket: String?
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

package struct BrokerConfiguration: Hashable, Sendable {
  package enum Endpoint: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case tls(host: String, port: Int)
    case unix(path: String)
  }
  package var endpoint: Endpoint = .tcp(host: "127.0.0.1", port: 1883)
  package var username: String?
  /// Read from file, environment or credential.
  package var password: String?
  package var usesMQTT5 = true
  /// `nil`: made from host name and base topic.
  package var clientID: String?
  package var keepalive: Duration = .seconds(30)
  package var ca: String?
  package var certificate: String?
  package var key: String?
  package var allowPlaintext = false
  package init() {}
}

package struct HTTPConfiguration: Hashable, Sendable {
  package var listen: [String]
  package var tokenFile: String?
  package init(listen: [String], tokenFile: String? = nil) {
    self.listen = listen
    self.tokenFile = tokenFile
  }
}

package struct JournalConfiguration: Hashable, Sendable {
  package var path: String
  package var commit: Duration = .milliseconds(100)
  package init(path: String) { self.path = path }
}

package struct LaneConfiguration: Hashable, Sendable {
  /// Tokens a second.
  package var rate: Double
  package var burst: Int
  package init(rate: Double, burst: Int) {
    self.rate = rate
    self.burst = burst
  }
}

package struct DiscoveryConfiguration: Hashable, Sendable {
  package enum Format: String, Hashable, Sendable { case device, component }
  package var prefix = "homeassistant"
  package var format = Format.device
  package init() {}
}

package struct Limits: Hashable, Sendable {
  package var pending = 100_000
  package var payload = 64 * 1024
  package var line = 64 * 1024
  package init() {}
}

/// One route: a topic filter debounced onto another, without a device model.
package struct RouteConfiguration: Hashable, Sendable {
  package struct End: Hashable, Sendable {
    /// `nil`: the gateway's own broker.
    package var broker: String?
    package var topic: String
    package init(broker: String? = nil, topic: String) {
      self.broker = broker
      self.topic = topic
    }
  }
  package var from: End
  package var to: End
  /// `nil` (`policy: none`) forwards everything, retain kept.
  package var policy: Policy?
  /// `merge: json`.
  package var mergesJSON = false
  /// Payloads that leave at once after flushing their topic.
  package var passPayloads: [[UInt8]] = []
  /// JSON members (`/brightness_step`) whose presence does the same.
  package var passMembers: [JSONPointer] = []
  package var qos = 1
  package init(from: End, to: End, policy: Policy?) {
    self.from = from
    self.to = to
    self.policy = policy
  }
}

/// Foreign events that become changes.
package struct InputConfiguration: Hashable, Sendable {
  package enum Operation: Hashable, Sendable {
    case set(JSONValue)
    case step(Double)
    case toggle
  }
  package struct Change: Hashable, Sendable {
    /// `device/property`.
    package var key: String
    package var operation: Operation
    package init(key: String, operation: Operation) {
      self.key = key
      self.operation = operation
    }
  }
  package var topic: String
  package var value: JSONPointer
  /// By the value found, as text.
  package var map: [String: Change]
  package init(topic: String, value: JSONPointer, map: [String: Change]) {
    self.topic = topic
    self.value = value
    self.map = map
  }
}
