// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Operations
internal import Values

/// Settings from environment variables, which override the settings file.
struct EnvironmentOverrides {
  let environment: [String: String]
  let problems: Problems

  /// The names of all variables that the gateway reads.
  static let variables = [
    "SETTLE_CONFIG", "SETTLE_DEVICES", "SETTLE_SOCKET", "SETTLE_MQTT_URL", "SETTLE_MQTT_USERNAME",
    "SETTLE_MQTT_PASSWORD", "SETTLE_MQTT_CLIENT_ID", "SETTLE_MQTT_BASE_TOPIC",
    "SETTLE_HTTP_LISTEN", "SETTLE_HTTP_TOKEN", "SETTLE_JOURNAL",
  ]

  /// A variable's value; an empty one counts as absent.
  func value(_ name: String) -> String? {
    environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Warns about unknown `SETTLE_…` variables.
  ///
  /// Their values may be secrets and are not shown.
  func warnAboutUnknownVariables() {
    let unknown = environment.filter { name, value in
      !value.isEmpty && name.uppercased().hasPrefix("SETTLE_") && !Self.variables.contains(name)
    }
    for name in unknown.keys.sorted() {
      problems.warn(
        position(Excerpt.of(name)),
        "unknown variable, ignored; known: \(Section.list(Self.variables))",
        suggestion: Suggestion.nearest(to: name, in: Self.variables)
      )
    }
  }

  func apply(to settings: inout GatewayConfiguration, _ positions: inout SettingsPositions) {
    if let url = value("SETTLE_MQTT_URL") {
      positions.main.url = position("SETTLE_MQTT_URL")
      do throws(BrokerURL.Problem) {
        var endpoints: [BrokerEndpoint] = []
        for address in url.split(whereSeparator: { $0 == " " || $0 == "," }) {
          endpoints.append(try BrokerURL.parse(String(address)))
        }
        settings.mqtt.use(endpoints)
      } catch {
        problems.add(
          position("SETTLE_MQTT_URL"),
          error.message,
          suggestion: error.suggestion
        )
      }
    }
    if let username = value("SETTLE_MQTT_USERNAME") { settings.mqtt.username = username }
    if let id = value("SETTLE_MQTT_CLIENT_ID") { settings.mqtt.clientID = id }
    if let base = value("SETTLE_MQTT_BASE_TOPIC") {
      if let problem = SettingsRules.problem(inBaseTopic: base) {
        problems.add(position("SETTLE_MQTT_BASE_TOPIC"), problem)
      } else {
        settings.baseTopic = base
      }
    }
    if let socket = value("SETTLE_SOCKET") {
      settings.socket = socket
      if let problem = SettingsRules.problem(inSocketPath: socket) {
        problems.add(position("SETTLE_SOCKET"), problem)
      }
    }
    if let path = value("SETTLE_JOURNAL") {
      var journal = settings.journal ?? JournalConfiguration(path: path)
      journal.path = path
      settings.journal = journal
    }
    if let listen = value("SETTLE_HTTP_LISTEN") { applyListen(listen, to: &settings, &positions) }
  }

  private func applyListen(
    _ listen: String,
    to settings: inout GatewayConfiguration,
    _ positions: inout SettingsPositions
  ) {
    var http = settings.http ?? HTTPConfiguration(listen: [])
    http.listen = []
    positions.listen = []
    for part in listen.split(separator: ",") {
      let address = String(part)
      if let problem = ListenAddress.problem(in: address) {
        problems.add(position("SETTLE_HTTP_LISTEN"), problem)
      } else {
        http.listen.append(address)
        positions.listen.append(position("SETTLE_HTTP_LISTEN"))
      }
    }
    settings.http = http
  }

  private func position(_ name: String) -> SourcePosition { .whole("$\(name)") }
}
