// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Simulation
import TestBroker
import Testing
import Values

/// Import of the announcements to Home Assistant of programs that use templates.
///
/// The fixtures have the members that the programs' sources write:
///
/// - `openbeken.txt`: `src/httpserver/hass.c` and `src/cmnds/cmd_enums.c` of OpenBK7231T_App
/// - `openmqttgateway.txt`: `main/ZmqttDiscovery.cpp` of OpenMQTTGateway
/// - `zwave-js-ui.txt`: `api/hass/DiscoveryGenerator.ts` and `api/hass/configurations.ts` of
///   zwave-js-ui
/// - `ems-esp.txt`: `src/core/mqtt.cpp` of EMS-ESP32
/// - `template-lights.txt`: lights with the schema `template`, with the templates of the OXRS
///   firmware for LED strips, of the scripts ha-shellies-discovery-gen2 and ha-shellies-discovery,
///   and of two bridges
struct UpstreamTests {
  private static func file(_ name: String) throws -> String {
    try #require(try Fixture.plan(Fixture.messages(name)).files.first).text
  }

  @Test(arguments: [
    ("openbeken.txt", "kommode/color", "#ff8000", "cmnd/kommode/led_basecolor_rgb #ff8000"),
    ("openbeken.txt", "kommode/effect", "Fire", "cmnd/kommode/anim 1"),
    ("openbeken.txt", "heizer/stufe", "Three", "heizer/14/set 3"),
    (
      "openbeken.txt", "klima/swing_horizontal_mode", "no_swing",
      "cmnd/klima/SwingH no_swing"
    ),
    ("openbeken.txt", "tor/position", "30", "cmnd/tor/ShutterMove0 30"),
    (
      "openmqttgateway.txt", "omg/bt_interval_between_scans", "5",
      #"home/OMG/commands/MQTTtoBT/config {"interval":5000,"save":true}"#
    ),
    (
      "openmqttgateway.txt", "omg/sys_led_brightness", "100",
      #"home/OMG/commands/MQTTtoSYS/config {"rgbb":255,"save":true}"#
    ),
    (
      "openmqttgateway.txt", "omg/sys_auto_discovery", "on",
      #"home/OMG/commands/MQTTtoSYS/config {"disc":true,"save":true}"#
    ),
    (
      "openmqttgateway.txt", "curtain-a4b5c6/position", "40",
      #"home/OMG/commands/MQTTtoBT/config {"model_id":"W070160X","cmd":40,"id":"D1E2F3A4B5C6"}"#
    ),
    (
      "zwave-js-ui.txt", "bar/color", "#ff8000",
      #"zwave/Bar/color/endpoint_0/targetColor/set {"red":255,"green":128,"blue":0}"#
    ),
    (
      "zwave-js-ui.txt", "flur-dimmer/power", "on",
      "zwave/Flur/Dimmer/switch_multilevel/endpoint_0/targetValue/set 99"
    ),
    (
      "zwave-js-ui.txt", "flur-dimmer/power", "off",
      "zwave/Flur/Dimmer/switch_multilevel/endpoint_0/targetValue/set OFF"
    ),
    ("ems-esp.txt", "ems-esp-thermostat/mode", "heat", "ems-esp/thermostat/hc1/mode heat"),
    ("ems-esp.txt", "ems-esp-boiler/dhw_activated", "off", "ems-esp/boiler/dhw/activated off"),
    (
      "template-lights.txt", "strip/brightness", "40",
      #"cmnd/oxrs {"strip":1,"state":"on","brightness":40}"#
    ),
    (
      "template-lights.txt", "strip/color", "#ff8000",
      #"cmnd/oxrs {"strip":1,"state":"on","color":{"r":255,"g":128,"b":0}}"#
    ),
    ("template-lights.txt", "strip/power", "off", #"cmnd/oxrs {"strip":1,"state":"off"}"#),
    (
      "template-lights.txt", "shelly/power", "on",
      #"shelly/rpc {"id":1,"src":"home-assistant","method":"Switch.Set","params":{"id":0,"on":true}}"#
    ),
    ("template-lights.txt", "elan/brightness", "255", #"elan/dim/set {"brightness":100}"#),
    ("template-lights.txt", "elan/power", "off", #"elan/dim/set {"brightness":0}"#),
    (
      "template-lights.txt", "rgbw2/effect", "2",
      #"shellies/rgbw2/color/0/set {"turn":"on","effect":2}"#
    ),
    ("template-lights.txt", "text/power", "off", "text/set off"),
  ])
  func `a command has the form that the template gives it`(
    fixture: String,
    key: String,
    text: String,
    sent: String
  ) throws {
    let property = try Self.property(key, in: fixture)
    let value = try property.value(fromPayload: Array(text.utf8).span)
    var bytes: [UInt8] = []
    property.command.payload.render(property.wireValue(of: value), into: &bytes)
    #expect("\(property.command.topic) \(String(decoding: bytes, as: UTF8.self))" == sent)
  }

  private static func property(_ key: String, in fixture: String) throws -> Property {
    let names = key.split(separator: "/")
    let devices = try Loaded.devices(["a.yaml": file(fixture)])
    let device = try #require(devices.first { $0.id == names[0] })
    return try #require(device.properties.first { $0.id == names[1] })
  }

  @Test(arguments: [
    ("openbeken.txt", "heizer/pegel", "2", "High"), ("openbeken.txt", "heizer/zustand", "1", "Ok"),
    ("openbeken.txt", "heizer/fenster", "0", "true"),
    ("openbeken.txt", "kommode/color", "FF8000", "#ff8000"),
    ("openbeken.txt", "kommode/color", "112233", "#112233"),
    ("zwave-js-ui.txt", "bad/action", "1", "heating"),
    ("zwave-js-ui.txt", "bad/mode", "1", "heat"),
    ("zwave-js-ui.txt", "haus/lock", "255", "true"),
    ("ems-esp.txt", "ems-esp-thermostat/mode", "manual", "heat"),
    ("ems-esp.txt", "ems-esp-thermostat/mode", "night", "off"),
    ("ems-esp.txt", "ems-esp-thermostat/mode", "auto", "auto"),
    ("openmqttgateway.txt", "omg/sys_auto_discovery", "false", "false"),
  ])
  func `a report means what the template makes of it`(
    fixture: String,
    key: String,
    report: String,
    shown: String
  ) throws {
    let property = try Self.property(key, in: fixture)
    #expect(property.value(fromWire: .string(report))?.json.scalarText == shown)
  }

  @Test func `what a gateway hears by radio is read at the gateway that announced it`() throws {
    let devices = try Loaded.devices(["a.yaml": Self.file("openmqttgateway.txt")])
    let sensor = try #require(devices.first { $0.id == "th-sensor-112233" })
    #expect(
      sensor.properties.map { "\($0.id) \($0.state?.topic ?? "")\($0.state?.value.text ?? "")" }
        == [
          "batt home/OMG/BTtoMQTT/A4C138112233/batt",
          "temperature home/OMG/BTtoMQTT/A4C138112233/tempc",
        ]
    )
  }

  @Test(arguments: [
    (
      "openbeken.txt",
      [
        "left_out: Klima: IR Transmitter: entities of the kind 'infrared' are not supported",
        "partly: Kommode: Light: effect: without a state; a template converts its commands, but not its "
          + "reports",
        "diagnostic: Kommode: RSSI",
      ]
    ),
    (
      "openmqttgateway.txt",
      [
        "partly: TH Sensor-112233: any gateway may report it; the topics are those of the one that "
          + "announced it",
        "partly: Curtain-A4B5C6: any gateway may report it; the topics are those of the one that "
          + "announced it",
        "partly: Blind-A4B5C7: any gateway may report it; the topics are those of the one that "
          + "announced it",
        "left_out: TH Sensor-445566: hum: state_topic: '+/+/BTtoMQTT/A4C138445566' has wildcards; a "
          + "device file names one topic",
      ]
    ),
    (
      "zwave-js-ui.txt",
      [
        "left_out: Bar: Bar_rgb_dimmer: color_temp: its color_temp_command_template cannot be "
          + "translated: {{ {'warmWhite': ((value - 245)|round(0)), 'coldWhite': (255 - (value - "
          + "245))|ro…",
        "partly: Bar: Bar_rgb_dimmer: not imported: color_temp_state_topic",
        "partly: Bar: Bar_rgb_dimmer: not imported: color_temp_value_template: {{ '%03d%03d' | "
          + "format((value_json.value.warmWhite || 0), (value_json.value.coldWhite || 0)) }}",
      ]
    ),
    (
      "ems-esp.txt",
      [
        "partly: ems-esp Boiler: without the availability that depends on whether a member is in the "
          + "reports",
        "partly: ems-esp Thermostat: without the availability that depends on whether a member is in "
          + "the reports",
      ]
    ),
  ])
  func `what is dropped is named`(fixture: String, expected: [String]) throws {
    let found = try Fixture.diagnostics(Fixture.messages(fixture))
    #expect(found.sorted() == expected.sorted())
  }

  @Test func `a part of a template light that is no structure is named with its text`() throws {
    let found = try Fixture.diagnostics(Fixture.messages("template-lights.txt"))
    let text =
      "on,{{ brightness|d }},{{ red|d }}-{{ green|d }}-{{ blue|d }},{{ hue|d }}-{{ sat|d }}"
    #expect(
      found == [
        "partly: Text: light: brightness: without a state, as its brightness_template cannot be "
          + "translated: {{ value.split(',')[1] }}",
        "left_out: Text: light: color: its command_on_template cannot be translated: \(text)",
        "partly: Text: light: power: without a state, as its state_template cannot be translated: "
          + "{{ value.split(',')[0] }}",
        "partly: Text: light: not imported: state_topic",
        "partly: Text: light: not imported: blue_template: "
          + "{{ value.split(',')[2].split('-')[2] }}",
        "partly: Text: light: not imported: green_template: "
          + "{{ value.split(',')[2].split('-')[1] }}",
        "partly: Text: light: not imported: red_template: {{ value.split(',')[2].split('-')[0] }}",
      ]
    )
  }
}

/// Imported devices of these programs that are driven, and that are changed by hand.
@Suite(.blocking) struct UpstreamScenarios {
  /// A change through Settle, the message that it becomes, and then a change by hand with what
  /// Settle shows of it.
  private struct Drive {
    var key: String
    var value: String
    var topic: String
    var sent: String
    var hand: String
    var shown: String
  }

  private func check(
    _ fixture: String,
    _ devices: [any SimulatedDevice],
    online: [String] = [],
    _ drives: [Drive]
  ) throws {
    let home = try ImportHome(Fixture.messages(fixture))
    #expect(try home.settled(["import"]).code == 0)
    let checked = try home.settled(["check"])
    #expect(checked.code == 0, "\(checked.output)\(checked.errors)")
    try home.startGateway()
    let stage = DeviceStage(home.client)
    for (number, device) in devices.enumerated() {
      stage.add(device, as: "\(number)")
      stage.comeUp("\(number)")
    }
    for topic in online { home.client.publish(topic, "online", retain: true) }
    for drive in drives {
      home.client.publish("settle/\(drive.key)/set", drive.value)
      let isConfirmed = stage.waitFor { messages in
        messages.last { $0.topic == "settle/\(drive.key)/event" }?.text.contains("confirmed")
          == true
      }
      #expect(isConfirmed, "\(drive.key): \(home.client.texts(on: "settle/\(drive.key)/event"))")
      #expect(home.client.texts(on: drive.topic).last == drive.sent)
      home.client.publish(drive.topic, drive.hand)
      let isShown = stage.waitFor { messages in
        messages.last { $0.topic == "settle/\(drive.key)" }?.text == drive.shown
      }
      #expect(isShown, "\(drive.key): \(home.client.texts(on: "settle/\(drive.key)"))")
    }
  }

  @Test func `devices with OpenBeken`() throws {
    try check(
      "openbeken.txt",
      [FakeDevice.openBekenLamp, FakeDevice.openBekenHeater],
      online: ["kommode/connected", "heizer/connected"],
      [
        Drive(
          key: "kommode/color",
          value: "#ff8000",
          topic: "cmnd/kommode/led_basecolor_rgb",
          sent: "#ff8000",
          hand: "#112233",
          shown: "#112233"
        ),
        Drive(
          key: "kommode/power",
          value: "on",
          topic: "cmnd/kommode/led_enableAll",
          sent: "1",
          hand: "0",
          shown: "false"
        ),
        Drive(
          key: "kommode/color_temp",
          value: "300",
          topic: "cmnd/kommode/led_temperature",
          sent: "300",
          hand: "400",
          shown: "400"
        ),
        Drive(
          key: "heizer/stufe",
          value: "Three",
          topic: "heizer/14/set",
          sent: "3",
          hand: "1",
          shown: "One Switch"
        ),
      ]
    )
  }

  @Test func `the settings of OpenMQTTGateway`() throws {
    try check(
      "openmqttgateway.txt",
      [FakeDevice.gatewaySettings],
      online: ["home/OMG/LWT"],
      [
        Drive(
          key: "omg/bt_interval_between_scans",
          value: "5",
          topic: "home/OMG/commands/MQTTtoBT/config",
          sent: #"{"interval":5000,"save":true}"#,
          hand: #"{"interval":7000}"#,
          shown: "7"
        ),
        Drive(
          key: "omg/sys_auto_discovery",
          value: "on",
          topic: "home/OMG/commands/MQTTtoSYS/config",
          sent: #"{"disc":true,"save":true}"#,
          hand: #"{"disc":false}"#,
          shown: "false"
        ),
      ]
    )
  }

  @Test func `nodes of zwave-js-ui`() throws {
    try check(
      "zwave-js-ui.txt",
      [FakeDevice.zWaveNodes],
      [
        Drive(
          key: "bad/mode",
          value: "heat",
          topic: "zwave/Bad/thermostat_mode/endpoint_0/mode/set",
          sent: "heat",
          hand: "off",
          shown: "off"
        ),
        Drive(
          key: "bar/color",
          value: "#ff8000",
          topic: "zwave/Bar/color/endpoint_0/targetColor/set",
          sent: #"{"red":255,"green":128,"blue":0}"#,
          hand: #"{"red":1,"green":2,"blue":3}"#,
          shown: "#010203"
        ),
        Drive(
          key: "flur-dimmer/brightness",
          value: "40",
          topic: "zwave/Flur/Dimmer/switch_multilevel/endpoint_0/targetValue/set",
          sent: "40",
          hand: "30",
          shown: "30"
        ),
        Drive(
          key: "flur-dimmer/power",
          value: "off",
          topic: "zwave/Flur/Dimmer/switch_multilevel/endpoint_0/targetValue/set",
          sent: "OFF",
          hand: "30",
          shown: "true"
        ),
      ]
    )
  }

  @Test func `a heating circuit of EMS-ESP`() throws {
    try check(
      "ems-esp.txt",
      [FakeDevice.heatingCircuit],
      [
        Drive(
          key: "ems-esp-thermostat/mode",
          value: "heat",
          topic: "ems-esp/thermostat/hc1/mode",
          sent: "heat",
          hand: "night",
          shown: "off"
        ),
        Drive(
          key: "ems-esp-thermostat/target_temperature",
          value: "21.5",
          topic: "ems-esp/thermostat/hc1/seltemp",
          sent: "21.5",
          hand: "18",
          shown: "18"
        ),
      ]
    )
  }

  @Test func `a light with the schema "template"`() throws {
    try check(
      "template-lights.txt",
      [FakeDevice.strip],
      [
        Drive(
          key: "strip/color",
          value: "#ff8000",
          topic: "cmnd/oxrs",
          sent: #"{"strip":1,"state":"on","color":{"r":255,"g":128,"b":0}}"#,
          hand: #"{"color":{"r":1,"g":2,"b":3}}"#,
          shown: "#010203"
        ),
        Drive(
          key: "strip/power",
          value: "off",
          topic: "cmnd/oxrs",
          sent: #"{"strip":1,"state":"off"}"#,
          hand: #"{"state":"on"}"#,
          shown: "true"
        ),
        Drive(
          key: "strip/effect",
          value: "rainbow",
          topic: "cmnd/oxrs",
          sent: #"{"strip":1,"state":"on","effect":"rainbow"}"#,
          hand: #"{"effect":"fire"}"#,
          shown: "fire"
        ),
      ]
    )
  }

  @Test func `values of a template light that change together are one message, and power wins`()
    throws
  {
    let home = try ImportHome(Fixture.messages("template-lights.txt"))
    #expect(try home.settled(["import"]).code == 0)
    try home.startGateway()
    home.client.publish("settle/strip/set", #"{"power":false,"brightness":7,"transition":2}"#)
    _ = home.client.waitFor { $0.contains { $0.topic == "cmnd/oxrs" } }
    #expect(
      home.client.texts(on: "cmnd/oxrs")
        == [#"{"strip":1,"state":"off","brightness":7,"transition":2}"#]
    )
  }
}
