// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import Operations
package import Routing

/// The gateway's settings, complete and checked.
package struct GatewayConfiguration: Hashable, Sendable {
  package var mqtt = BrokerConfiguration()
  package var baseTopic = "settle"
  /// Filters of MQTT 5 response topics that get replies, beside those below `<base>/reply/`.
  package var replyTopics: [String] = []
  /// The path of the control socket; `nil` for the default.
  package var socket: String?
  /// The default policies by property type.
  package var policies = PolicyTable()
  /// How long a value may wait for an offline broker or device, by default.
  package var ttl: Duration = .seconds(60)
  package var devicesDirectory = "./devices"
  /// A second folder of device files, read after the first: where the gateway imports if it cannot
  /// write the first; `nil` without a state folder.
  package var stateDevices: String?
  /// The settings file; `nil` for built-in settings.
  package var settingsFile: String?
  package var http: HTTPConfiguration?
  package var journal: JournalConfiguration?
  package var cluster: ClusterConfiguration?
  package var shutdownTimeout: Duration = .seconds(10)
  package var lanes: [String: LaneLimits] = [:]
  package var brokers: [String: BrokerConfiguration] = [:]
  package var routes: [RouteConfiguration] = []
  package var inputs: [InputConfiguration] = []
  package var discovery: DiscoveryConfiguration?
  /// What the gateway imports while it runs; `nil` for nothing.
  package var importing: ImportConfiguration?
  package var limits = Limits()
  /// Whether the gateway accepts commands by MQTT and publishes its status.
  ///
  /// A gateway that runs beside another one on the same base topic does neither.
  package var isPublic = true
  package init() {}
}

extension GatewayConfiguration {
  /// The client id of a gateway whose settings name none.
  package var standardClientID: String {
    cluster.map { "settle-\($0.name)-\($0.member)" } ?? "settle-\(HostName.current)-\(baseTopic)"
  }

  /// These settings for a gateway that runs beside one that may use them, and serves one client.
  ///
  /// Everything that both would do twice, or that only one of them can have, is off. `name` follows
  /// the client id, so that the broker tells them apart.
  package func besideAnother(named name: String) -> Self {
    var settings = self
    settings.isPublic = false
    settings.mqtt.clientID = "\(mqtt.clientID ?? standardClientID)-\(name)"
    settings.http = nil
    settings.journal = nil
    settings.cluster = nil
    settings.discovery = nil
    settings.importing = nil
    settings.brokers = [:]
    settings.routes = []
    settings.inputs = []
    return settings
  }
}

/// The limits on what the gateway accepts and keeps in memory.
package struct Limits: Hashable, Sendable {
  /// The number of keys with a pending value.
  package var pending = 100_000
  /// The size of one payload from the broker, in bytes.
  package var payload = 64 * 1024
  /// The size of one payload that a route without a policy forwards, or that is imported, in bytes.
  package var announcement = 16 << 20
  /// The size of one line on the control socket and over HTTP, in bytes.
  package var line = 64 * 1024
  /// The number of concurrent HTTP connections.
  package var httpClients = 64
  /// The number of events that are buffered for a slow client before it is disconnected.
  package var events = 1024
  /// The number of devices, those that messages create included.
  package var devices = 100_000
  package init() {}
}

/// How devices are announced to Home Assistant.
package struct DiscoveryConfiguration: Hashable, Sendable {
  package enum Format: String, Hashable, Sendable { case device, component }
  package var prefix = "homeassistant"
  package var format = Format.device
  package init() {}
}

/// What the gateway imports while it runs, and when.
package struct ImportConfiguration: Hashable, Sendable {
  /// A convention by which devices are announced without being asked.
  package enum Source: String, CaseIterable, Hashable, Sendable {
    case zigbee2mqtt, homeassistant, homie, tasmota
  }

  package var sources = Source.allCases
  /// How long nothing may be announced before an import.
  package var quiet: Duration = .seconds(5)
  /// How long an import waits for that at most.
  package static let longestWait = Duration.seconds(60)
  package init() {}
}

/// Where the journal is stored and how often it commits.
package struct JournalConfiguration: Hashable, Sendable {
  package var path: String
  /// The longest time between a change and its commit.
  package var commit: Duration = .milliseconds(100)
}

/// How to connect to an MQTT broker.
package struct BrokerConfiguration: Hashable, Sendable {
  package var endpoint: BrokerEndpoint = .tcp(host: "127.0.0.1", port: 1883)
  /// Further brokers, tried in turn after the first.
  package var alternatives: [BrokerEndpoint] = []
  package var username: String?
  /// From a file, the environment or a credential of the service manager.
  package var password: String?
  /// Whether to use MQTT 5; otherwise 3.1.1.
  package var usesMQTT5 = true
  /// Whether a broker that does not speak MQTT 5 is used with 3.1.1: the settings state no
  /// protocol.
  package var allowsOlderVersion = true
  /// `nil` for one that is derived from host name and base topic.
  package var clientID: String?
  package var keepalive: Duration = .seconds(30)
  /// The path of a PEM file with certificate authorities; `nil` for the system's.
  package var ca: String?
  /// The path of the client certificate.
  package var certificate: String?
  /// The path of the client certificate's private key.
  package var key: String?
  /// Whether a password may travel unencrypted to a public host.
  package var allowPlaintext = false

  package var endpoints: [BrokerEndpoint] { [endpoint] + alternatives }

  /// The addresses in the words of the settings.
  var urls: String { endpoints.map(\.description).joined(separator: ", ") }

  /// Takes the addresses in their order; without any, those so far stay.
  mutating func use(_ endpoints: [BrokerEndpoint]) {
    guard let first = endpoints.first else { return }
    endpoint = first
    alternatives = Array(endpoints.dropFirst())
  }

  /// Whether a connection may use TLS.
  var usesTLS: Bool {
    endpoints.contains { endpoint in
      if case .tls = endpoint { true } else { false }
    }
  }
}

/// The HTTP server's addresses and access rules.
package struct HTTPConfiguration: Hashable, Sendable {
  package enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  /// `HOST:PORT` or `unix:PATH`.
  package var listen: [String]
  package var tokenFile: String?
  /// From the token file, the environment or a credential of the service manager.
  package var token: String?
  /// Further host names that clients may use for this gateway, such as a proxy's.
  package var hosts: [String] = []
  /// Proxies whose requests need no token, as they are written; see ``trustedPeers``.
  package var trusted: [String] = []

  /// The parsed addresses of ``listen``; the reader rejects invalid ones.
  package var addresses: [Address] { listen.compactMap { ListenAddress.read($0) } }

  /// The parsed entries of ``trusted``; the reader rejects invalid ones.
  package var trustedPeers: TrustedPeers {
    var peers = TrustedPeers()
    for text in trusted { _ = peers.insert(text) }
    return peers
  }

  /// Whether a client that no proxy vouches for needs a token: one is set, or other machines can
  /// connect.
  package var needsToken: Bool {
    token != nil || addresses.contains { ListenAddress.isBeyondThisMachine($0) }
  }
}

/// A topic whose events become changes.
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
  /// The topic filter to subscribe to.
  package var topic: String
  /// Where the event is in the payload.
  package var value: JSONPointer
  /// The source of its changes in their events; `nil` for `input:` and the topic.
  package var source: String?
  /// Changes by the event's text.
  package var map: [String: Change]
  package init(topic: String, value: JSONPointer, map: [String: Change]) {
    self.topic = topic
    self.value = value
    self.map = map
  }
}
