// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import Operations
import TestBroker
import Testing

/// A lamp whose topic in the device file is wrong, and one whose topic brings what cannot be read.
@Suite(.blocking) struct ReceptionScenarios {
  /// A lamp without color, whose commands fail soon.
  private static func lamp(at topic: String = "zigbee2mqtt/desk_lamp") -> String {
    """
    desk-lamp:
      profile: zigbee2mqtt/light
      topic: \(topic)
      properties:
        power: {policy: {delay: 20ms, max_wait: none}, confirm: {within: 200ms}}
        color_temp: none
        color: none
        color_mode: none

    """
  }

  private func run(_ arguments: String..., at bench: Bench) throws -> String {
    let run = try SettleRun(arguments, socketPath: bench.socketPath)
    _ = run.waitForExit()
    return run.output + run.errors
  }

  private func status(of bench: Bench) throws -> StatusReport {
    let reply = try bench.client().ask(#"{"status":true}"#)
    return try #require(reply["status"].flatMap(StatusReport.init), "\(reply)")
  }

  /// The only row of a reply about one key or device.
  private func row(_ question: String, _ name: String, of bench: Bench) throws -> JSONValue {
    let reply = try bench.client().ask(#"{"\#(question)":"\#(name)"}"#)
    guard case .array(let rows) = reply[question], rows.count == 1 else {
      Issue.record("no row: \(reply)")
      return nil
    }
    return rows[0]
  }

  @Test func `a lamp with a wrong topic is unheard, and status names the topic once it fails`()
    throws
  {
    let (bench, curl) = try Bench.serving(devices: Self.lamp(at: "zigbee2mqtt/desklamp"))
    let witness = try bench.witness()
    // The lamp itself is well.
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF","brightness":40}"#, retain: true)
    witness.publish("zigbee2mqtt/desklamp/availability", #"{"state":"online"}"#)

    #expect(try run("devices", at: bench).contains("\tunheard\t"))
    #expect(try run("devices", "--json", at: bench).contains(#""heard":false"#))
    for question in ["get", "describe"] {
      #expect(try row(question, "desk-lamp/power", of: bench)["heard"] == false)
    }
    #expect(try curl("/v1/devices/desk-lamp/power").json["heard"] == false)
    #expect(try run("describe", "desk-lamp/power", at: bench).contains("heard      never"))
    #expect(try status(of: bench).problems == [])
    #expect(try run("status", at: bench).contains("1 with 2 properties, 1 unheard"))

    let line = try run("set", "desk-lamp/power", "on", "--wait", at: bench)
    #expect(line.contains("not confirmed within 200ms"))
    let report = try status(of: bench)
    #expect(
      report.devices.unheard == [
        .init(key: "desk-lamp/power", topic: "zigbee2mqtt/desklamp", pointer: "/state")
      ]
    )
    #expect(report.problems.map(\.subject) == ["reports"])
    let text = try run("status", at: bench)
    #expect(text.contains("needs attention"))
    #expect(text.contains("zigbee2mqtt/desklamp"))

    // The topic is corrected, and the state there is retained.
    try TextFile.write(Self.lamp(), to: bench.folder + "/devices/devices.yaml")
    _ = try bench.client().ask(#"{"reload":true}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "40"))
    #expect(try run("devices", at: bench).contains("\tonline\t"))
    #expect(try row("get", "desk-lamp/power", of: bench)["heard"] == nil)
    #expect(try curl("/v1/devices/desk-lamp/power").json["heard"] == nil)
    #expect(try status(of: bench).problems == [])
  }

  @Test func `a reload keeps what was heard, and a restart begins again`() throws {
    let bench = try Bench.running(devices: Self.lamp())
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF","brightness":40}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "40"))

    _ = try bench.client().ask(#"{"reload":true}"#)
    #expect(try row("devices", "desk-lamp", of: bench)["heard"] == nil)
    let renamed = Self.lamp().replacing("desk-lamp:", with: "desk-lamp:\n  name: Lamp")
    try TextFile.write(renamed, to: bench.folder + "/devices/devices.yaml")
    _ = try bench.client().ask(#"{"reload":true}"#)
    #expect(try row("devices", "desk-lamp", of: bench)["name"] == "Lamp")
    #expect(try row("devices", "desk-lamp", of: bench)["heard"] == nil)

    try bench.startGateway()
    #expect(try row("devices", "desk-lamp", of: bench)["heard"] == false)
  }

  @Test func `a device without a state topic is not unheard`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    #expect(try row("devices", "dev0", of: bench)["heard"] == nil)
    #expect(try row("get", "dev0/level", of: bench)["heard"] == nil)
  }

  @Test func `reports that cannot be read are counted, logged once, and named in the reason`()
    throws
  {
    let (bench, curl) = try Bench.serving(devices: Self.lamp())
    let witness = try bench.witness()
    for text in ["garbage", "garbage\u{1B}[2J", #"{"state":"dunno","brightness":{}}"#] {
      witness.publish("zigbee2mqtt/desk_lamp", text)
    }
    // A part of the state, and a value that the lamp does not know, are no mistakes.
    witness.publish("zigbee2mqtt/desk_lamp", #"{"linkquality":90}"#)
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":null}"#)
    let line = try run("set", "desk-lamp/power", "on", "--wait", at: bench)
    #expect(
      line.contains("not confirmed within 200ms; the last report cannot be read: 'dunno'"),
      "\(line)"
    )

    let power = try row("describe", "desk-lamp/power", of: bench)
    #expect(power["unreadable"] == .object(["count": 3, "last": "'dunno'"]))
    #expect(power["heard"] == nil)
    let brightness = try row("describe", "desk-lamp/brightness", of: bench)
    #expect(brightness["unreadable"] == .object(["count": 3, "last": "an object"]))
    let text = try run("describe", "desk-lamp/power", at: bench)
    #expect(text.contains("unreadable 3 reports, the last: 'dunno'"))

    let report = try status(of: bench)
    #expect(report.devices.unreadable.map(\.key) == ["desk-lamp/power"])
    #expect(report.problems.map(\.subject) == ["reports"])
    #expect(report.counters.contains(.init("reports_unreadable", 6)))

    let metrics = try PrometheusText.parse(try curl("/metrics").text)
    let family = try #require(metrics["settle_reports_unreadable_total"])
    #expect(
      family.samples == [
        #"settle_reports_unreadable_total{device="desk-lamp",property="power"}"#: 3,
        #"settle_reports_unreadable_total{device="desk-lamp",property="brightness"}"#: 3,
      ]
    )
    let log = try bench.running().lines(containing: "Report cannot be read")
    #expect(log.count == 2)
    #expect(log.allSatisfy { $0.contains("zigbee2mqtt/desk_lamp") && $0.contains("'garbage'") })

    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"ON","brightness":40}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "40"))
    #expect(try status(of: bench).problems == [])
    #expect(try status(of: bench).counters.contains(.init("reports_unreadable", 6)))
  }
}
