// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import FoundationEssentials
import JSON
import LastOut
import Operations
import Routing
import Testing
import Values

/// The examples of the documentation, verbatim.
struct DocumentedExamplesTests {
  private func fixture(_ name: String) throws -> String {
    let file = Loading.root + "/Tests/ConfigurationTests/Fixtures/\(name)"
    return try String(contentsOf: URL(filePath: file), encoding: .utf8)
  }

  private func loaded(
    settings: String? = nil,
    devices: String,
    environment: [String: String] = [:]
  ) throws -> LoadedConfiguration {
    let (outcome, folder) = try Loading.run(
      settings: settings,
      devices: ["d.yaml": devices],
      environment: environment
    )
    switch outcome {
    case .loaded(let configuration): return configuration
    case .refused(let problems):
      try #require(problems.isEmpty, "\(Loading.lines(problems, in: folder))")
      throw CancellationError()
    }
  }

  @Test func `the documented devices load`() throws {
    let registry = try loaded(devices: fixture("documented-devices.yaml")).registry
    #expect(registry.devices.map(\.id) == ["desk-lamp", "boiler"])
    let lamp = registry.devices[0]
    #expect(lamp.name == "Desk lamp")
    #expect(lamp.lane == "zigbee")
    #expect(lamp.merge)
    #expect(lamp.options == ["transition"])
    #expect(
      lamp.properties.map(\.id) == ["power", "brightness", "color_temp", "color", "color_mode"]
    )
    #expect(
      lamp.availability.map(\.topic) == [
        "zigbee2mqtt/desk_lamp/availability", "zigbee2mqtt/bridge/state",
      ]
    )
    let brightness = registry[try registry.index(of: "desk-lamp/brightness")].property
    #expect(brightness.policy == Policy(delay: .milliseconds(300), maxWait: .seconds(2)))
    #expect(brightness.command.topic == "zigbee2mqtt/desk_lamp/set")
    #expect(brightness.confirm == Confirmation())
    var payload: [UInt8] = []
    let value = try brightness.value(from: .string("40"))
    brightness.command.payload.render(brightness.wireValue(of: value), into: &payload)
    #expect(String(decoding: payload, as: UTF8.self) == #"{"brightness":40}"#)

    let boiler = registry[try registry.index(of: "boiler/target_temperature")].property
    #expect(boiler.kind == .number(NumberRule(range: 5...30, step: 0.5, unit: "°C")))
    #expect(boiler.policy == Policy(delay: .milliseconds(800)))
    #expect(boiler.confirm == Confirmation(within: .seconds(10), tolerance: 0.1, retries: 2))
    #expect(
      boiler.state
        == StateSource(
          topic: "heating/boiler",
          value: try #require(JSONPointer("/setpoint"))
        )
    )
    let mode = registry[try registry.index(of: "boiler/mode")].property
    #expect(mode.kind == .choice(["off", "heat", "auto"]))
    #expect(mode.urgent == [.text("off")])
    #expect(mode.ends == ["target_temperature"])
    #expect(mode.confirm == nil)
  }

  @Test func `the documented settings load`() throws {
    let token = "0123456789abcdef0123456789abcdef"
    let gateway = try loaded(
      settings: fixture("documented-settings.yaml"),
      devices: Loading.lamp,
      environment: ["SETTLE_MQTT_PASSWORD": "secret", "SETTLE_HTTP_TOKEN": token]
    ).gateway
    #expect(gateway.mqtt.endpoint == .tcp(host: "127.0.0.1", port: 1883))
    #expect(gateway.mqtt.username == "settle")
    #expect(gateway.mqtt.password == "secret")
    #expect(gateway.mqtt.clientID?.hasPrefix("settle-") == true)
    #expect(gateway.mqtt.clientID?.contains("<") == false)
    #expect(gateway.socket == "/run/settle/settle.sock")
    #expect(gateway.http?.addresses == [.tcp(host: "127.0.0.1", port: 8484)])
    #expect(gateway.http?.tokenFile == "/etc/settle/token")
    #expect(gateway.http?.token == token)
    #expect(gateway.journal?.path == "/var/lib/settle/journal.db")
    #expect(gateway.shutdownTimeout == .seconds(10))
    #expect(gateway.lanes == ["zigbee": LaneLimits(rate: 10, burst: 5)])
    #expect(gateway.brokers["cloud"]?.endpoint == .tls(host: "example.org", port: 8883))
    #expect(gateway.discovery == DiscoveryConfiguration())
    #expect(gateway.limits == Limits())
    #expect(
      gateway.routes.map(\.from) == [
        .init(topic: "slow/+/in"), .init(broker: "cloud", topic: "cmd/#"),
      ]
    )
    #expect(gateway.routes[0].policy?.delay == .milliseconds(500))
  }

  @Test(arguments: [
    ("auto", LaneLimits.Window.auto), ("7", .init(start: 7, min: 7, max: 7)),
    ("{start: 2, min: 2}", .init(start: 2, min: 2, max: 32)),
    ("{max: 3}", .init(start: 3, min: 1, max: 3)), ("{}", .auto),
  ])
  func `a lane has a window, a rate, or both`(text: String, window: LaneLimits.Window) throws {
    let settings = "lanes: {a: {window: \(text)}, b: {rate: 2/s, window: \(text)}}\n"
    let lanes = try loaded(settings: settings, devices: Loading.lamp).gateway.lanes
    #expect(lanes["a"] == LaneLimits(window: window))
    #expect(lanes["b"] == LaneLimits(rate: .init(perSecond: 2), window: window))
  }

  @Test func `the documented input loads`() throws {
    let text = """
      inputs: [{topic: zigbee2mqtt/knob, value: /action, map: {brightness_step_up: \
      {key: lamp/level, step: 10}, toggle: {key: lamp/power, toggle: true}}}]
      routes: [{from: a, to: b, policy: none}, {from: c, to: d, merge: json, \
      pass: [STOP, /brightness_step]}]
      devices: ../devices
      """
    let gateway = try loaded(settings: text, devices: Loading.lamp).gateway
    #expect(gateway.inputs[0].map["brightness_step_up"]?.operation == .step(10))
    #expect(gateway.inputs[0].map["toggle"] == .init(key: "lamp/power", operation: .toggle))
    #expect(gateway.routes[0].policy == nil)
    #expect(gateway.routes[1].mergesJSON)
    #expect(
      gateway.routes[1].pass
        == [.payload(Array("STOP".utf8)), .member(try #require(JSONPointer("/brightness_step")))]
    )
  }

  @Test func `the shipped files load without warnings`() throws {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = Loading.root + "/docs/examples/settle.yaml"
    guard case .loaded(let loaded) = Loading.load(overrides) else {
      Issue.record("The shipped files have mistakes.")
      return
    }
    #expect(loaded.warnings.isEmpty)
    #expect(
      loaded.registry.devices.map(\.id) == [
        "boiler", "desk-lamp", "hall-thermostat", "hall-blind", "porch-light",
      ]
    )
  }
}
