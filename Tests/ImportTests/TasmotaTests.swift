// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Simulation
import TestBroker
import Testing
import Values

/// Import of Tasmota's own discovery.
///
/// The fixture has the members that `TasDiscoverMessage` of Tasmota's `xdrv_12_discovery.ino`
/// writes; the devices are those that hatasmota's `discovery.py` and `light.py` tell apart.
struct TasmotaTests {
  private static func device(_ id: String) throws -> Device {
    let file = try #require(try Fixture.plan(Fixture.messages("tasmota.txt")).files.first)
    return try #require(try Loaded.devices(["a.yaml": file.text]).first { $0.id == id })
  }

  /// `topic payload` of a command.
  private static func sent(_ device: Device, _ id: String, _ text: String) throws -> String {
    let property = try #require(device.properties.first { $0.id == id })
    let value = try property.value(fromPayload: Array(text.utf8).span)
    var bytes: [UInt8] = []
    property.command.payload.render(property.wireValue(of: value), into: &bytes)
    return "\(property.command.topic) \(String(decoding: bytes, as: UTF8.self))"
  }

  @Test(arguments: [
    ("geschirrspueler", "power", "on", "cmnd/tasmota_17E7AE/POWER ON"),
    ("stehlampe", "power", "off", #"cmnd/stehlampe/Json {"POWER":"OFF"}"#),
    ("stehlampe", "brightness", "30", #"cmnd/stehlampe/Json {"Dimmer":30}"#),
    ("stehlampe", "color_temp", "200", #"cmnd/stehlampe/Json {"CT":200}"#),
    ("stehlampe", "color", "#ff8800", #"cmnd/stehlampe/Json {"Color2":"255,136,0"}"#),
    ("wohnzimmer", "position", "30", "haus/wz/cmnd/ShutterPosition1 70"),
    ("wohnzimmer", "tilt", "-45", "haus/wz/cmnd/ShutterTilt1 -45"),
    ("wohnzimmer", "command", "STOP", "haus/wz/cmnd/ShutterPosition1 STOP"),
    ("wohnzimmer", "power_3", "on", "haus/wz/cmnd/POWER3 ON"),
    ("ventilator", "power", "on", "cmnd/fan/POWER1 ON"),
    ("ventilator", "fan_speed", "3", "cmnd/fan/FanSpeed 3"),
    ("altes-licht", "power", "on", "cmnd/alt/POWER AN"),
    ("altes-licht", "brightness", "7", "cmnd/alt/Dimmer 7"),
    ("zwei", "brightness_1", "7", #"cmnd/zwei/Json {"Dimmer1":7}"#),
    ("zwei", "brightness_2", "7", #"cmnd/zwei/Json {"Dimmer2":7}"#),
    ("zwei", "color_temp_2", "300", #"cmnd/zwei/Json {"CT":300}"#),
    ("zwei", "power_2", "on", "cmnd/zwei/POWER2 ON"),
    ("leisten", "brightness_2", "50", #"cmnd/leisten/Json {"Channel2":50}"#),
    ("leisten", "power_1", "off", #"cmnd/leisten/Json {"POWER1":"OFF"}"#),
  ])
  func `a command has the form that the device announced`(
    id: String,
    property: String,
    text: String,
    sent: String
  ) throws {
    #expect(try Self.sent(Self.device(id), property, text) == sent)
  }

  @Test(arguments: [
    ("stehlampe", ["brightness power", "color_temp power", "color power"]),
    (
      "zwei",
      [
        "brightness_1 power_1", "color_1 power_1", "brightness_2 power_2", "color_temp_2 power_2",
      ]
    ),
    ("leisten", ["brightness_1 power_1", "brightness_2 power_2"]),
    ("altes-licht", ["brightness power"]), ("wohnzimmer", []), ("ventilator", []),
  ])
  func `what sets a lamp turns it on`(id: String, implied: [String]) throws {
    let properties = try Self.device(id).properties
    #expect(
      properties.flatMap { property in
        property.implies.map { "\(property.id) \($0.property)" }
      } == implied
    )
  }

  @Test(arguments: [("0", true), ("1", false)])
  func `SetOption20 keeps a lamp off that is set`(option: String, isTurnedOn: Bool) throws {
    let text =
      #"{"dn":"Lamp","fn":["Lamp"],"t":"lamp","ft":"%prefix%/%topic%/","mac":"DC4F22000009","#
      + #""tp":["cmnd","stat","tele"],"ofln":"Offline","onln":"Online","state":["OFF","ON"],"#
      + #""rl":[2],"lt_st":1,"lk":1,"so":{"20":\#(option)},"sw":"13.4.0","ver":1}"#
    let file = try Fixture.file([
      Announcement(topic: "tasmota/discovery/DC4F22000009/config", text: text)
    ])
    #expect(file.contains("implies: {power: true}") == isTurnedOn)
  }

  @Test func `readings have names, units and places`() throws {
    let plug = try Self.device("geschirrspueler")
    let readings = plug.properties.filter(\.isReadOnly)
    #expect(
      readings.map { "\($0.id) \($0.kind.numberRule?.unit ?? "-") \($0.state?.value.text ?? "")" }
        == [
          "energy kWh /ENERGY/Total", "energy_yesterday kWh /ENERGY/Yesterday",
          "energy_today kWh /ENERGY/Today", "active_power W /ENERGY/Power",
          "apparent_power VA /ENERGY/ApparentPower", "reactive_power var /ENERGY/ReactivePower",
          "power_factor - /ENERGY/Factor", "voltage V /ENERGY/Voltage",
          "current A /ENERGY/Current", "temperature °C /SI7021/Temperature",
          "humidity % /SI7021/Humidity", "dew_point °C /SI7021/DewPoint",
        ]
    )
    #expect(readings.allSatisfy { $0.state?.topic == "tele/tasmota_17E7AE/SENSOR" })
    #expect(plug.details?.model == "Nous A1T" && plug.details?.url == "http://192.168.1.31/")
    #expect(plug.availability.map(\.topic) == ["tele/tasmota_17E7AE/LWT"])
    let lamp = try Self.device("stehlampe")
    #expect(lamp.merge)
    #expect(lamp.properties.first { $0.id == "color_temp" }?.kind.numberRule?.range == 200...380)
  }

  @Test func `what is left out is listed`() throws {
    #expect(
      try Fixture.diagnostics(Fixture.messages("tasmota.txt")) == [
        "diagnostic: Geschirrspüler: ENERGY/TotalStartTime",
        "partly: Zwei: with SetOption4 its replies have topics of their own; only power is confirmed",
        "partly: Zwei: setting the color turns off the white of the same lamp",
        "refused: tasmota/discovery/DC4F22000007/config: no discovery of version 1",
      ]
    )
  }
}

/// Imported Tasmota devices that are driven, and that are changed by hand.
@Suite(.blocking) struct TasmotaScenarios {
  @Test func `an imported lamp and shutter confirm, and report what is done by hand`() throws {
    let home = try ImportHome(Fixture.messages("tasmota.txt"))
    #expect(try home.settled(["import"]).code == 65)
    let checked = try home.settled(["check"])
    #expect(checked.code == 0, "\(checked.output)\(checked.errors)")
    try home.startGateway()
    let stage = DeviceStage(home.client)
    stage.add(TasmotaDimmer(name: "stehlampe"), as: "lamp")
    stage.comeUp("lamp")
    home.client.publish("settle/stehlampe/set", ##"{"color":"#00ff00","brightness":20}"##)
    let targets = [
      "settle/stehlampe/brightness": "20", "settle/stehlampe/power": "true",
    ]
    #expect(
      stage.waitFor { messages in
        let told = messages.filter { $0.topic == "settle/stehlampe/color/event" }.map(\.text)
        return told.last?.contains("confirmed") == true
          && targets.allSatisfy { target in
            messages.last { $0.topic == target.key }?.text == target.value
          }
      },
      "\(home.client.texts(on: "settle/stehlampe/color/event"))"
    )
    #expect(
      home.client.texts(on: "cmnd/stehlampe/Json")
        == [#"{"Dimmer":20,"Color2":"0,255,0"}"#]
    )
    // By hand.
    home.client.publish("cmnd/stehlampe/Dimmer", "77")
    #expect(
      stage.waitFor { messages in
        messages.last { $0.topic == "settle/stehlampe/brightness" }?.text == "77"
      }
    )
  }
}
