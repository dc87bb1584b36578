// Settle
// SPDX-License-Identifier: Apache-2.0

/// The allowed keys of every section of both files; the documentation is tested against them.
package enum KeyTable: String, CaseIterable, Sendable {
  // The settings file.
  case settings
  case mqtt
  case broker = "brokers.<name>"
  case policies = "policy"
  case http
  case journal
  case cluster
  case shutdown
  case lane = "lanes.<name>"
  case window = "lanes.<name>.window"
  case busy = "lanes.<name>.busy"
  case route = "routes[]"
  case routeEnd = "routes[].from"
  case input = "inputs[]"
  case inputChange = "inputs[].map.<value>"
  case discovery
  case importing = "import"
  case limits
  // Device files and profiles.
  case device
  case details = "<device>.device"
  case profile
  case property = "properties.<id>"
  case policyFields = "properties.<id>.policy"
  case command = "properties.<id>.command"
  case state = "properties.<id>.state"
  case stateGet = "properties.<id>.state.get"
  case scale = "properties.<id>.scale"
  case display = "properties.<id>.display"
  case decode = "properties.<id>.decode"
  case confirm = "properties.<id>.confirm"
  case availability = "availability[]"
  case awake
  case group = "groups.<name>"

  /// The allowed keys, in the order of the documentation.
  package var keys: [String] {
    switch self {
    case .settings:
      [
        "mqtt", "socket", "policy", "ttl", "devices", "http", "journal", "cluster", "shutdown",
        "lanes", "brokers", "routes", "inputs", "discovery", "import", "limits",
      ]
    case .mqtt: Self.connection + ["base_topic", "reply_topics"]
    case .broker: Self.connection
    case .policies: ["number", "integer", "boolean", "choice", "text", "color", "action"]
    case .http: ["listen", "token_file", "hosts", "trusted"]
    case .journal: ["path", "commit"]
    case .cluster:
      [
        "name", "member", "nats", "credentials_file", "username", "password_file", "ca", "cert",
        "key", "partitions", "replicas", "monitor",
      ]
    case .shutdown: ["timeout"]
    case .lane: ["rate", "burst", "window", "busy"]
    case .window: ["start", "min", "max"]
    case .busy: ["topic", "value", "is"]
    case .route:
      [
        "from", "to", "policy", "merge", "pass", "urgent", "word_delay", "announcements", "will",
        "qos",
      ]
    case .routeEnd: ["broker", "topic"]
    case .input: ["topic", "value", "source", "map"]
    case .inputChange: ["key", "set", "step", "toggle"]
    case .discovery: ["prefix", "format"]
    case .importing: ["sources", "quiet"]
    case .limits:
      ["pending", "payload", "announcement", "line", "http_clients", "events", "devices"]
    case .device:
      [
        "for", "from", "name", "area", "class", "panel", "device", "profile", "topic", "parameters",
        "lane", "merge", "options", "availability", "awake", "ttl", "restore", "properties",
      ]
    case .details: ["manufacturer", "model", "url", "identifiers"]
    case .profile:
      [
        "description", "profile", "parameters", "class", "lane", "merge", "options",
        "availability", "awake", "ttl", "restore", "properties",
      ]
    case .property:
      [
        "name", "aliases", "class", "category", "type", "range", "step", "unit", "values", "on",
        "off", "scale", "display", "encode", "decode", "policy", "command", "state", "confirm",
        "ttl", "urgent",
        "ends", "excludes", "implies", "always", "restore", "hold", "hands",
      ]
    case .policyFields: ["delay", "max_wait", "leading", "min_interval"]
    case .command: ["topic", "payload", "qos", "retain"]
    case .state: ["topic", "value", "get", "acknowledges", "id", "error"]
    case .stateGet: ["topic", "payload"]
    case .scale: ["from", "to", "decimals"]
    case .display: ["unit", "scale"]
    case .decode: ["on", "off", "else"]
    case .confirm: ["within", "tolerance", "retries", "backoff"]
    case .availability: ["topic", "value", "online", "offline", "else"]
    case .awake: ["topic", "value"]
    case .group: ["name", "members", "topic", "profile", "area", "panel", "device"]
    }
  }

  private static let connection = [
    "url", "username", "password_file", "protocol", "client_id", "keepalive", "ca", "cert", "key",
    "allow_plaintext",
  ]

  private static let sets = [KeyTable: Set<String>](
    uniqueKeysWithValues: allCases.map { ($0, Set($0.keys)) }
  )

  /// Whether `key` is allowed in this section; expected constant time.
  func contains(_ key: String) -> Bool { Self.sets[self]?.contains(key) ?? false }
}
