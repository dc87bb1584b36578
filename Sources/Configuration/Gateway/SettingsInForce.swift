// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Lists the settings in force: what the gateway works with, and what stated it.
struct SettingsInForce {
  private let settings: GatewayConfiguration
  /// The settings file, if there is one.
  private let root: YAMLNode?
  private let environment: EnvironmentOverrides
  private let overrides: ConfigurationLoader.Overrides
  private var rows: [SettingInForce] = []

  /// All settings, in the order of the documentation.
  static func rows(
    of settings: GatewayConfiguration,
    _ root: YAMLNode?,
    _ environment: EnvironmentOverrides,
    _ overrides: ConfigurationLoader.Overrides
  ) -> [SettingInForce] {
    var list = SettingsInForce(
      settings: settings,
      root: root,
      environment: environment,
      overrides: overrides
    )
    list.addBroker()
    list.addPlaces()
    list.addSurfaces()
    list.addTimes()
    list.addLimits()
    return list.rows
  }

  // MARK: - Sections

  private mutating func addBroker() {
    let mqtt = settings.mqtt
    add("mqtt.url", mqtt.urls, variable: "SETTLE_MQTT_URL")
    add("mqtt.username", mqtt.username ?? Self.none, variable: "SETTLE_MQTT_USERNAME")
    if mqtt.password == nil {
      add("mqtt.password_file", Self.none)
    } else {
      let file = stated("mqtt.password_file")
      addSecret("mqtt.password", file: file, variable: "SETTLE_MQTT_PASSWORD")
    }
    add("mqtt.protocol", mqtt.usesMQTT5 ? "5" : "3.1.1")
    add(
      "mqtt.client_id",
      mqtt.clientID ?? settings.standardClientID,
      variable: "SETTLE_MQTT_CLIENT_ID"
    )
    add("mqtt.base_topic", settings.baseTopic, variable: "SETTLE_MQTT_BASE_TOPIC")
    add("mqtt.keepalive", DurationText.text(mqtt.keepalive))
    if !settings.replyTopics.isEmpty {
      add("mqtt.reply_topics", settings.replyTopics.joined(separator: ", "))
    }
    if mqtt.usesTLS { add("mqtt.ca", mqtt.ca ?? "the system's") }
    if let path = mqtt.certificate { add("mqtt.cert", path) }
    if let path = mqtt.key { add("mqtt.key", path) }
    if mqtt.allowPlaintext { add("mqtt.allow_plaintext", "true") }
  }

  private mutating func addPlaces() {
    add(
      "socket",
      settings.socket ?? Self.none,
      variable: "SETTLE_SOCKET",
      option: overrides.socket.map { _ in "--socket" }
    )
    add(
      "devices",
      settings.devicesDirectory,
      variable: "SETTLE_DEVICES",
      option: overrides.devices.map { _ in "--devices" }
    )
    add("journal.path", settings.journal?.path ?? Self.off, variable: "SETTLE_JOURNAL")
    if let journal = settings.journal { add("journal.commit", DurationText.text(journal.commit)) }
    addCluster()
  }

  private mutating func addCluster() {
    guard let cluster = settings.cluster else { return add("cluster.name", Self.off) }
    add("cluster.name", cluster.name)
    add("cluster.member", cluster.member)
    add("cluster.nats", cluster.servers.joined(separator: ", "))
    if let file = cluster.credentialsFile { add("cluster.credentials_file", file) }
    if let name = cluster.username { add("cluster.username", name) }
    if let file = stated("cluster.password_file") { add("cluster.password_file", file) }
    if let ca = cluster.ca { add("cluster.ca", ca) }
    if let path = cluster.certificate { add("cluster.cert", path) }
    if let path = cluster.key { add("cluster.key", path) }
    add("cluster.partitions", String(cluster.partitions))
    add("cluster.replicas", String(cluster.replicas))
    let monitors = cluster.monitors.joined(separator: " ")
    add("cluster.monitor", monitors.isEmpty ? "none" : monitors)
  }

  private mutating func addSurfaces() {
    let listen = settings.http?.listen.joined(separator: ", ")
    add("http.listen", listen ?? Self.off, variable: "SETTLE_HTTP_LISTEN")
    if let http = settings.http, http.token != nil {
      addSecret("http.token", file: http.tokenFile, variable: "SETTLE_HTTP_TOKEN")
    }
    if let hosts = settings.http?.hosts, !hosts.isEmpty {
      add("http.hosts", hosts.joined(separator: ", "))
    }
    if let trusted = settings.http?.trusted, !trusted.isEmpty {
      add("http.trusted", trusted.joined(separator: ", "))
    }
    add("discovery.prefix", settings.discovery?.prefix ?? Self.off)
    if let discovery = settings.discovery { add("discovery.format", discovery.format.rawValue) }
    add("import", settings.importing.map(Self.text) ?? Self.off)
    for name in settings.brokers.keys.sorted() {
      add("brokers.\(name).url", settings.brokers[name]?.urls ?? Self.none)
    }
    if !settings.routes.isEmpty { add("routes", "\(settings.routes.count)") }
    if !settings.inputs.isEmpty { add("inputs", "\(settings.inputs.count)") }
  }

  private mutating func addTimes() {
    for type in KeyTable.policies.keys {
      if let stated = stated("policy.\(type)") { add("policy.\(type)", stated) }
    }
    add("ttl", DurationText.text(settings.ttl))
    add("shutdown.timeout", DurationText.text(settings.shutdownTimeout))
    for name in settings.lanes.keys.sorted() {
      add("lanes.\(name)", stated("lanes.\(name)") ?? Self.none)
    }
  }

  private mutating func addLimits() {
    let limits = settings.limits
    add("limits.pending", "\(limits.pending)")
    add("limits.payload", Self.size(limits.payload))
    add("limits.announcement", Self.size(limits.announcement))
    add("limits.line", Self.size(limits.line))
    add("limits.http_clients", "\(limits.httpClients)")
    add("limits.events", "\(limits.events)")
    add("limits.devices", "\(limits.devices)")
  }

  // MARK: - Rows

  private static let none = "none"
  private static let off = "off"

  /// Adds a row; the option beats the variable, which beats the file.
  private mutating func add(
    _ name: String,
    _ value: String,
    variable: String? = nil,
    option: String? = nil
  ) {
    let origin =
      option ?? variable.flatMap { environment.value($0) == nil ? nil : $0 }
      ?? position(name).map { "\($0.file):\($0.line)" } ?? SettingInForce.standard
    rows.append(SettingInForce(name: name, value: value, origin: origin))
  }

  /// Adds a row for a secret; a variable beats `file`, which beats a credential.
  private mutating func addSecret(_ name: String, file: String?, variable: String) {
    let isVariable = environment.value(variable) != nil
    if let file, !isVariable { return add("\(name)_file", file) }
    let origin = isVariable ? variable : "credential \(name)"
    rows.append(SettingInForce(name: name, value: "set", origin: origin))
  }

  /// What the file states, as it states it: `live`, or `rate 10/s, burst 5`.
  private func stated(_ name: String) -> String? {
    guard let node = pair(name)?.value else { return nil }
    if let text = node.text { return text }
    return node.pairs?.map { "\($0.key) \($0.value.text ?? "…")" }.joined(separator: ", ")
  }

  /// What is imported, and when.
  private static func text(_ importing: ImportConfiguration) -> String {
    importing.sources.map(\.rawValue).joined(separator: ", ")
      + "; quiet \(DurationText.text(importing.quiet))"
  }

  /// A size in the largest unit with a whole count.
  private static func size(_ bytes: Int) -> String {
    for (unit, factor) in [("MiB", 1 << 20), ("KiB", 1 << 10)] where bytes % factor == 0 {
      return "\(bytes / factor)\(unit)"
    }
    return "\(bytes)"
  }

  private func position(_ name: String) -> SourcePosition? { pair(name)?.keyPosition }

  /// The entry of the file that states a setting, found by the parts of its name.
  private func pair(_ name: String) -> YAMLNode.Pair? {
    var found: YAMLNode.Pair?
    var node = root
    for part in name.split(separator: ".") {
      found = node?.pairs?.first { $0.key == part }
      node = found?.value
    }
    return found
  }
}

/// One setting as it is in force, and where its value comes from.
package struct SettingInForce: Hashable, Sendable {
  /// As in the settings file, such as `mqtt.url`.
  package var name: String
  /// As text; of a secret only that it is set.
  package var value: String
  /// `default`, `FILE:LINE`, the name of a variable, or an option.
  package var origin: String

  /// The origin of a value that nothing states.
  package static let standard = "default"
}
