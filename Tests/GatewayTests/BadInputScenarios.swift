// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Bad input is refused clearly, and has no other effect.
@Suite(.blocking) struct BadInputScenarios {
  private let devices = DeviceText.lamp() + DeviceText.levels(1, policy: "{delay: 20ms}")

  /// A good change on another key settles as if nothing had happened.
  private func expectAtWork(_ bench: Bench, value: Int = 5) throws {
    let witness = try bench.witness()
    witness.publish("settle/dev0/level/set", "\(value)")
    #expect(witness.waitFor("cmd/dev0", #"{"v":\#(value)}"#))
  }

  /// A line, and what the answer says.
  private static let lines = [
    (#"{"key":"desk-lamp/brighness","set":40}"#, "brightness"),
    (#"{"key":"desk-lmp/brightness","set":40}"#, "desk-lamp"),
    (#"{"key":"desk-lamp/brightness","set":"bright"}"#, "bright"),
    (#"{"key":"desk-lamp/brightness","set":"21,5"}"#, "21"),
    (#"{"key":"desk-lamp/brightness","set":255}"#, "254"),
    (#"{"key":"desk-lamp/brightness","set":-1}"#, "0"),
    (#"{"key":"desk-lamp/brightness","set":NaN}"#, "not JSON"),
    (#"{"key":"desk-lamp/brightness","set":1e999}"#, ""),
    (#"{"key":"desk-lamp/brightness","set":null}"#, "null"),
    (#"{"key":"desk-lamp/brightness","set":[1]}"#, ""),
    (#"{"key":"desk-lamp/brightness","step":"much"}"#, "number"),
    (#"{"key":"desk-lamp/power","step":1}"#, ""),
    (#"{"key":"desk-lamp/brightness","toggle":true}"#, ""),
    (#"{"key":"desk-lamp/+","set":40}"#, "+"),
    (#"{"key":"desk-lamp/#","set":40}"#, "#"),
    (#"{"key":"desk-lamp/*","set":40}"#, ""),
    (#"{"key":"desk\u0000lamp/brightness","set":40}"#, ""),
    (#"{"key":"","set":40}"#, ""),
    (#"{"key":"desk-lamp/brightness","sett":40}"#, "set"),
    (#"{"get":"desk-lamp/brighness"}"#, "brightness"),
    (#"{"cancel":"nothing/there"}"#, "nothing"),
    ("hello", "not JSON"),
    ("[1,2]", "object"),
    (#"{"key":"dev0/level","set":1,"wait":"confirmed"}"#, "confirm"),
  ]

  private static func reason(of reply: JSONValue) -> String {
    reply["reason"]?.string ?? reply["error"]?["message"]?.string ?? ""
  }

  @Test(arguments: [#"{"nope":1}"#, "on", "[]", "{}", #"{"transition":1}"#])
  func `a message to a device that names no property has an event of the device`(
    payload: String
  ) throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    let client = try bench.client()
    client.send(#"{"watch":"*","id":"w"}"#)
    _ = try client.ask(#"{"get":"*","id":"there"}"#)

    witness.publish("settle/desk-lamp/set", payload)

    let text = try #require(witness.texts(on: "settle/desk-lamp/event", count: 1).first)
    let event = try JSONParser.parse(text)
    #expect(event["key"] == "desk-lamp")
    #expect(event["phase"] == "rejected")
    #expect(event["source"] == "mqtt")
    #expect(event["reason"]?.string?.isEmpty == false)
    #expect(try client.next { $0["watch"] == "w" }["event"]?["key"] == "desk-lamp")
  }

  @Test func `a message to a device that names a property has an event of that property only`()
    throws
  {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("settle/desk-lamp/set", #"{"brightness":1,"nope":1}"#)
    let text = try #require(
      witness.texts(on: "settle/desk-lamp/brightness/event", count: 1).first
    )
    #expect(text.contains("rejected") && text.contains("nope"))
    witness.publish("settle/desk-lamp/set", "{}")
    #expect(witness.texts(on: "settle/desk-lamp/event", count: 1).count == 1)
    #expect(try bench.running().lines(containing: "Message rejected").count == 1)
  }

  @Test func `two mistakes on different topics are both logged`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("settle/desk-lamp/brightness/set", "x")
    witness.publish("settle/desk-lamp/power/set", "y")
    for topic in ["brightness", "power"] {
      #expect(
        try bench.running().waitForLine(containing: "topic=settle/desk-lamp/\(topic)/set") != nil
      )
    }
  }

  @Test func `an invalid line is answered with the reason`() throws {
    let bench = try Bench.running(devices: devices)
    let client = try bench.client()

    for (line, said) in Self.lines {
      // The gateway searches for one suggestion a second: a repeated mistake gets its own later.
      var wait = Wait()
      var reply = try client.ask(line)
      while !Self.reason(of: reply).contains(said), wait.remaining() != nil {
        reply = try client.ask(line)
      }

      let reason = Self.reason(of: reply)
      #expect(reply["phase"] == "rejected" || reply["error"]?["code"]?.string != nil, "\(line)")
      #expect(reason.contains(said), "\(line) \(reason)")
      #expect(!reason.isEmpty, "\(line)")
      // The connection goes on.
      #expect(try client.ask(#"{"get":"dev0/level","id":7}"#)["id"] == 7, "\(line)")
    }
    try expectAtWork(bench)
  }

  @Test func `bytes that are no text, half a line and a long line get their answers`() throws {
    let bench = try Bench.running(devices: devices)
    let client = try bench.client()

    client.send(bytes: [0x7B, 0xFF, 0xFE, 0x00, 0x7D, 0x0A])
    #expect(try client.next()["error"]?["code"] == "syntax")
    client.send(String(repeating: "[", count: 10_000))
    #expect(try client.next()["error"]?["code"] == "syntax")
    client.send(String(repeating: "x", count: 100 * 1024))
    let long = try client.next()
    #expect(long["error"]?["code"] == "line_too_long")
    #expect(long["error"]?["line"] == 3)
    #expect(try client.ask(#"{"get":"dev0/level","id":1}"#)["id"] == 1)
    client.send(bytes: Array(#"{"key":"dev0/level","#.utf8))
    client.endInput()
    #expect(try client.next()["error"]?["code"] == "incomplete_line")
    #expect(client.isClosed())
  }

  @Test(arguments: [
    // topic, payload, kind in the log, what the log says
    // Nobody reads suggestions here, so none is searched for.
    ("settle/desk-lamp/brighness/set", "40", "unknown key", #"no property 'brighness'""#),
    ("settle/desk-lmp/set", "{}", "unknown key", #"no device 'desk-lmp'""#),
    ("settle/desk-lamp/brightness/set", "bright", "bad value", "bright"),
    ("settle/desk-lamp/brightness/set", "21,5", "bad value", "21.5"),
    ("settle/desk-lamp/brightness/set", "999", "bad value", "254"),
    ("settle/desk-lamp/brightness/set", "NaN", "bad value", "NaN"),
    ("settle/desk-lamp/brightness/set", "inf", "bad value", "inf"),
    ("settle/desk-lamp/brightness/set", "", "bad value", "empty"),
    ("settle/desk-lamp/brightness/set", "a\0b", "bad value", ""),
    ("settle/desk-lamp/brightness/set", #"{"value":"x"}"#, "bad value", "x"),
    ("settle/desk-lamp/brightness/set", #"{"value":1,"valeu":2}"#, "bad value", "valeu"),
    ("settle/desk-lamp/brightness/step", "up", "bad value", "number"),
    ("settle/desk-lamp/set", #"{"power":1,"brightness":"loud"}"#, "bad value", "brightness: found"),
    ("settle/desk-lamp/set", #"{"brightness":1,"powr":true}"#, "bad value", "no property 'powr'"),
    ("settle/desk-lamp/set", #"{"transition":1}"#, "bad value", "options"),
    ("settle/desk-lamp/set", "on", "bad value", "JSON"),
  ])
  func `an invalid message is logged with its content`(
    topic: String,
    payload: String,
    kind: String,
    said: String
  ) throws {
    let bench = try Bench.running(devices: devices)
    let witness = try bench.witness()

    witness.publish(topic, Array(payload.utf8))

    let line = try bench.running().waitForLine(containing: "Message rejected")
    #expect(line?.contains("kind=\"\(kind)\"") == true)
    #expect(line?.contains("topic=\(topic)") == true)
    #expect(line?.contains(said) == true, "\(line ?? "")")
    try expectAtWork(bench)
    #expect(witness.texts(on: "zigbee2mqtt/desk_lamp/set").isEmpty)
  }

  @Test func `a refused device-level set names each property with its value`() throws {
    let bench = try Bench.running(devices: devices)
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/set", #"{"power":true,"brightness":"loud","nothing":1}"#)

    for (property, value) in [("power", JSONValue.boolean(true)), ("brightness", "loud")] {
      let topic = "settle/desk-lamp/\(property)/event"
      let event = try JSONParser.parse(try #require(witness.texts(on: topic, count: 1).first))
      #expect(event["phase"] == "rejected")
      #expect(event["value"] == value)
    }
  }

  @Test func `a flood of bad messages is counted, not written line by line`() throws {
    let bench = try Bench.running(devices: devices)
    let witness = try bench.witness()
    try expectAtWork(bench)

    let payload = [UInt8](repeating: UInt8(ascii: "["), count: 60_000)
    for _ in 0..<50 { witness.publish("settle/desk-lamp/brightness/set", payload) }
    try expectAtWork(bench, value: 6)
    let before = try bench.running().residentBytes()
    for _ in 0..<150 { witness.publish("settle/desk-lamp/brightness/set", payload) }
    try expectAtWork(bench, value: 7)

    #expect(try bench.running().lines(containing: "Message rejected").count == 1)
    #expect(try bench.running().residentBytes() - before < 4 << 20)
  }

  @Test(arguments: ["", ", protocol: 3.1.1"])
  func `a payload above the limit has no other effect`(mqtt: String) throws {
    let bench = try Bench.running(devices: devices, mqtt: mqtt)
    let witness = try bench.witness()
    try expectAtWork(bench)
    let before = try bench.running().residentBytes()

    witness.publish("settle/desk-lamp/brightness/set", Array(repeating: 0x31, count: 100 << 10))
    #expect(try bench.running().waitForLine(containing: "payload too large") != nil)
    witness.publish("settle/desk-lamp/brightness/set", Array(repeating: 0x31, count: 10 << 20))
    try expectAtWork(bench, value: 6)

    #expect(try bench.running().lines(containing: "No connection").isEmpty)
    if mqtt.isEmpty { #expect(try bench.running().residentBytes() - before < 4 << 20) }
  }

  @Test(arguments: ["", ", protocol: 3.1.1"])
  func `a retained command is not replayed`(mqtt: String) throws {
    let bench = try Bench(devices: devices, mqtt: mqtt)
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("settle/desk-lamp/brightness/set", "200", retain: true)

    try bench.startGateway()
    try expectAtWork(bench)

    #expect(witness.texts(on: "zigbee2mqtt/desk_lamp/set").isEmpty)
    if !mqtt.isEmpty {
      let lines = try bench.running().lines(containing: "Retained command ignored")
      #expect(lines.count == 1)
      #expect(lines.first?.contains("settle/desk-lamp/brightness/set") == true)
    }
  }

  @Test func `deep JSON and half a document on a state topic are passed over`() throws {
    let bench = try Bench.running(devices: devices)
    let witness = try bench.witness()

    witness.publish("zigbee2mqtt/desk_lamp", String(repeating: "[", count: 10_000))
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":"#)
    witness.publish("zigbee2mqtt/desk_lamp", [0xFF, 0xFE, 0x00])
    witness.publish("zigbee2mqtt/desk_lamp", "")
    witness.publish("zigbee2mqtt/desk_lamp/availability", "???")
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":77}"#)

    let client = try bench.client()
    #expect(witness.waitFor("settle/desk-lamp/brightness", "77"))
    #expect(
      try client.ask(#"{"key":"desk-lamp/brightness","step":3,"now":true}"#)["value"] == 80
    )
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":80}"#))
  }

  @Test func `more keys than the limit are refused, those that wait are not`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(3, policy: "{delay: 60s, max_wait: none}"),
      settings: "limits: {pending: 2}"
    )
    let client = try bench.client()

    #expect(try client.ask(#"{"key":"dev0/level","set":1}"#)["phase"] == "accepted")
    #expect(try client.ask(#"{"key":"dev1/level","set":1}"#)["phase"] == "accepted")
    let reply = try client.ask(#"{"key":"dev2/level","set":1}"#)
    #expect(reply["phase"] == "rejected")
    #expect(reply["reason"]?.string?.contains("2") == true)
    #expect(try client.ask(#"{"key":"dev1/level","set":2}"#)["phase"] == "accepted")
  }
}
