// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

/// What `settle status` lists as the settings in force.
@Suite struct SettingsInForceTests {
  /// A file that states a value in every section.
  private static let file = """
    mqtt:
      url: mqtts://broker.example
      username: me
      protocol: 3.1.1
      client_id: mine
      keepalive: 20s
      ca: /ca.pem
      base_topic: home
      reply_topics: [a/b]
    socket: s.sock
    policy: {number: {delay: 1s, max_wait: 2s}, color: live}
    ttl: 5s
    devices: devices
    http: {listen: [127.0.0.1:1], hosts: [house]}
    journal: {path: j.db, commit: 1s}
    shutdown: {timeout: 3s}
    lanes: {zigbee: {rate: 30/m, burst: 2}}
    brokers: {cloud: {url: mqtt://cloud.example}}
    routes: [{from: a, to: b}]
    inputs: [{topic: t, map: {on: {key: lamp/power, set: true}}}]
    discovery: {prefix: ha}
    import: auto
    limits: {pending: 9, payload: 1MiB, line: 3000}
    """
  private static let lamp = """
    lamp: {properties: {power: {type: boolean, command: {topic: t, payload: $value}}}}
    """

  private func rows(
    _ environment: [String: String] = [:],
    socket: String? = nil
  ) throws -> [String: SettingInForce] {
    let folder = try TemporaryFolder(["settle.yaml": Self.file, "devices/lamp.yaml": Self.lamp])
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/settle.yaml"
    overrides.socket = socket
    let loaded = try withExtendedLifetime(folder) {
      try ConfigurationLoader.load(overrides, environment: environment)
    }
    return Dictionary(uniqueKeysWithValues: loaded.settings.map { ($0.name, $0) })
  }

  @Test func `every section of the settings is listed`() throws {
    let names = try rows().keys
    for section in KeyTable.settings.keys {
      #expect(names.contains { $0 == section || $0.hasPrefix("\(section).") }, "\(section)")
    }
  }

  @Test(arguments: [
    ("mqtt.url", "mqtts://broker.example:8883", 2), ("mqtt.protocol", "3.1.1", 4),
    ("policy.number", "delay 1s, max_wait 2s", 11), ("policy.color", "live", 11),
    ("lanes.zigbee", "rate 30/m, burst 2", 17),
    ("brokers.cloud.url", "mqtt://cloud.example:1883", 18),
    ("routes", "1", 19), ("inputs", "1", 20), ("limits.payload", "1MiB", 23),
    ("limits.line", "3000", 23),
    ("import", "zigbee2mqtt, homeassistant, homie, tasmota; quiet 5s", 22),
  ])
  func `a value of the file has its line`(name: String, value: String, line: Int) throws {
    let row = try #require(try rows()[name])
    #expect(row.value == value)
    #expect(row.origin.hasSuffix("/settle.yaml:\(line)"), "\(row.origin)")
  }

  @Test func `a variable beats the file, and an option the variable`() throws {
    let variables = ["SETTLE_MQTT_URL": "mqtt://other", "SETTLE_SOCKET": "/v.sock"]
    let rows = try rows(variables, socket: "/o.sock")
    #expect(rows["mqtt.url"]?.value == "mqtt://other:1883")
    #expect(rows["mqtt.url"]?.origin == "SETTLE_MQTT_URL")
    #expect(rows["socket"]?.value == "/o.sock")
    #expect(rows["socket"]?.origin == "--socket")
  }

  @Test func `a secret is not shown`() throws {
    let token = "0123456789abcdef0123"
    let rows = try rows(["SETTLE_MQTT_PASSWORD": "hush", "SETTLE_HTTP_TOKEN": token])
    #expect(rows["mqtt.password"]?.value == "set")
    #expect(rows["mqtt.password"]?.origin == "SETTLE_MQTT_PASSWORD")
    #expect(rows["http.token"]?.value == "set")
    #expect(!rows.values.contains { $0.value.contains("hush") || $0.value.contains("0123456") })
  }

  @Test func `what nothing states is a default`() throws {
    #expect(try rows()["limits.events"]?.origin == SettingInForce.standard)
  }
}
