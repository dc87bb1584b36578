// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
@testable import Import
import JSON
import Operations
import TestBroker
import Testing

/// `settle import` with a real broker, and the gateway with the imported files.
@Suite(.blocking) struct ImportScenarios {
  @Test func `a change to any of 60 imported devices arrives in that device's own form`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let imported = try home.settled(["import"])
    #expect(imported.code == 0)
    #expect(imported.output.contains("73 devices, 2 groups, 574 properties; 75 added"))
    let checked = try home.settled(["check"])
    #expect(checked.code == 0)
    #expect(checked.output.hasPrefix("OK: 73 devices, 2 groups, 574 properties ("))

    try home.startGateway()
    let rows = try Fixture.text("changes.txt").split(separator: "\n").map {
      $0.split(separator: "\t").map { String($0) }
    }
    #expect(rows.count == 60)
    #expect(Set(rows.map { $0[2] }).count == 60)
    for row in rows {
      #expect(row.count == 4)
      try #require(home.client.publish("settle/\(row[0])/set", row[1]))
    }
    let topics = Set(rows.map { $0[2] })
    _ = home.client.waitFor { messages in
      Set(messages.map(\.topic)).isSuperset(of: topics)
    }
    for row in rows { #expect(home.client.texts(on: row[2]) == [row[3]], "\(row[0])") }
  }

  @Test func `a group, a Tasmota lamp, a Z-Wave awning and a Homie strip get their own forms`()
    throws
  {
    let home = try ImportHome(Fixture.all())
    #expect(try home.settled(["import"]).code == 65)
    #expect(try home.settled(["check"]).code == 0)
    try home.startGateway()
    let rows = [
      (
        "wohnzimmer-alle/brightness", "77", "zigbee2mqtt/Wohnzimmer alle/set", #"{"brightness":77}"#
      ),
      ("stehlampe/color", "#ff8800", "eg/cmnd/stehlampe/Color2", "255,136,0"),
      ("stehlampe/brightness", "30", "eg/cmnd/stehlampe/Dimmer", "30"),
      (
        "arbeitszimmer/deckenlampe_effect", "Kerze", "arbeitszimmer/light/deckenlampe/command",
        #"{"state":"ON","effect":"Kerze"}"#
      ),
      ("arbeitszimmer/neustart", "press", "arbeitszimmer/button/neustart/command", "PRESS"),
      ("markise/position", "50", "zwave/Terrasse/Markise/38/0/targetValue/set", "50"),
      ("heizung-bad-2/mode", "auto", "zwave/Bad/Heizung/64/0/mode/set", "31"),
      ("keller/sollfeuchte", "45", "keller/humidity/set", #"{"target":45,"source":"ha"}"#),
      ("kessel/warmwasser_aktiv", "off", "ems-esp/boiler/dhw/activated", "false"),
      ("led-streifen-kueche/color", "#0a0b0c", "homie/5/strip-1/strip/color/set", "rgb,10,11,12"),
      ("thermostat-diele/target", "21.5", "homie/5/thermo-01/climate/target/set", "21.5"),
      ("thermostat-diele/boost", "press", "homie/5/thermo-01/climate/boost/set", "true"),
    ]
    for row in rows { home.client.publish("settle/\(row.0)/set", row.1) }
    for row in rows {
      _ = home.client.waitFor { $0.contains { $0.topic == row.2 } }
      #expect(home.client.texts(on: row.2) == [row.3], "\(row.0)")
    }
  }

  @Test func `a dry run writes nothing and prints a diff for patch`() throws {
    let home = try ImportHome(Fixture.all())
    let before = home.names()
    let dry = try home.settled(["import", "--dry-run"])
    #expect(home.names() == before)
    #expect(dry.output.hasPrefix("--- /dev/null\n+++ b/"))
    #expect(dry.output.contains("\n+wohnzimmer-decke:\n"))
    #expect(dry.errors.contains("; 75 added; nothing was written\n"))
  }

  @Test func `a second run keeps edits and removes temporary files`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    #expect(try home.settled(["import"]).code == 0)
    let file = "\(home.folder)/devices/imported-zigbee2mqtt.yaml"
    let written = try #require(TextFile.read(file))
    let edited = written.replacing(
      "  topic: zigbee2mqtt/Wohnzimmer/Decke\n",
      with: "  topic: zigbee2mqtt/Wohnzimmer/Decke\n  ttl: 5m  # patient\n"
    )
    #expect(edited != written)
    try TextFile.write(edited, to: file)

    let lamp =
      #"{"ieee_address":"0xfe","friendly_name":"Neue Lampe","definition":{"exposes":[{"type":"switch","features":[{"type":"binary","name":"state","property":"state","access":7,"value_on":"ON","value_off":"OFF"}]}]}}"#
    let devices = try Fixture.text("bridge-devices.json").dropLast(3) + ",\(lamp)]"
    home.client.publish("zigbee2mqtt/bridge/devices", String(devices), retain: true)
    let second = try home.settled(["import"])
    #expect(second.code == 0)
    #expect(
      second.output.contains("74 devices, 2 groups, 575 properties; 1 added\n  added neue-lampe\n")
    )
    let text = try #require(TextFile.read(file))
    #expect(text.contains("  ttl: 5m  # patient\n"))
    #expect(text.contains("\nneue-lampe:\n"))
    #expect(try home.settled(["check"]).code == 0)
    #expect(
      home.names(in: "devices") == [".imported-zigbee2mqtt.json", "imported-zigbee2mqtt.yaml"]
    )
    let third = try home.settled(["import"])
    #expect(third.output.hasSuffix("74 devices, 2 groups, 575 properties; nothing new\n"))
  }

  @Test func `--json prints one object per line`() throws {
    let home = try ImportHome(Fixture.messages("homie.txt"))
    let run = try home.settled(["import", "--json", "--dry-run"])
    #expect(run.code == 65)
    #expect(run.errors == "")
    let lines = try run.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
    #expect(lines[0]["source"] == "homie")
    #expect(lines[0]["devices"] == 3)
    #expect(lines[0]["written"] == false)
    #expect(lines.count { $0["change"] == "added" } == 3)
    #expect(lines.contains { $0["remark"] == "refused" && $0["subject"] == "homie/5/old" })
  }

  @Test func `broken announcements are reported and the rest is imported`() throws {
    var announcements = try Fixture.messages("homie.txt").filter { !$0.topic.contains("old") }
    announcements.append(
      Announcement(
        topic: "zigbee2mqtt/bridge/devices",
        payload: [UInt8](repeating: UInt8(ascii: "["), count: 10 << 20)
      )
    )
    announcements.append(Announcement(topic: "homeassistant/light/x/config", text: "{broken"))
    let home = try ImportHome(announcements)
    let run = try home.settled(["import"])
    #expect(run.code == 65)
    #expect(
      run.errors.contains(
        "refused: zigbee2mqtt/bridge/devices: 10485760 bytes; the limit is 8 MiB\n"
      )
    )
    #expect(run.errors.contains("refused: homeassistant/light/x/config: not JSON: "))
    #expect(home.names(in: "devices") == [".imported-homie.json", "imported-homie.yaml"])
    #expect(try home.settled(["check"]).code == 0)
  }

  @Test func `an absent or empty broker is reported`() throws {
    let home = try ImportHome([])
    let empty = try home.settled(["import"])
    #expect(empty.code == 69)
    #expect(empty.errors.contains("no retained message on +/bridge/devices"))
    home.broker.stop()
    let absent = try home.settled(["import"])
    #expect(absent.code == 69)
    #expect(absent.errors.contains("no connection to mqtt://127.0.0.1:"))
    #expect(home.names(in: "devices").isEmpty)
  }

  @Test func `a broker that does not answer is awaited until the timeout`() throws {
    let home = try ImportHome(Fixture.messages("homie.txt"))
    home.broker.pause()
    let run = try home.settled(["import", "--timeout", "400ms"])
    home.broker.resume()
    #expect(run.code == 75)
    #expect(run.errors.contains("within --timeout"))
  }

  @Test func `an import goes on to the second broker, and names the one that it uses`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let hole = try BlackHole()
    try home.useBrokers(["mqtt://127.0.0.1:\(hole.port)", home.url])

    let run = try home.settled(["import", "--timeout", "12s"])

    #expect(run.code == 0, "\(run.errors)")
    #expect(run.errors.contains("Reading what is announced at \(home.url)\n"), "\(run.errors)")
    #expect(home.names(in: "devices").contains("imported-zigbee2mqtt.yaml"))
  }

  @Test func `an import that reaches no broker names all of them`() throws {
    let home = try ImportHome([])
    let port = try PortReservation()
    let urls = [home.url, "mqtt://127.0.0.1:\(port.port)"]
    try home.useBrokers(urls)
    home.broker.stop()

    let run = try home.settled(["import"])

    #expect(run.code == 69)
    #expect(run.errors.contains("no connection to \(urls[0]), \(urls[1]): "), "\(run.errors)")
  }

  @Test(arguments: [
    (
      ["import", "--base", "a/#"],
      "--base: 'a/#' is not a base topic: the topic contains the wildcard #"
    ),
    (["import", "--only", "zigbee"], #"did you mean "zigbee2mqtt"?"#),
    (["import", "--timeout", "0"], "--timeout must be more than 0"),
    (["import", "--in-between=zigbee2mqtt"], "must move to a base topic other than"),
    (["import", "--undo"], "--undo: only with --in-between"),
  ])
  func `a wrong command line is explained`(arguments: [String], message: String) throws {
    let home = try ImportHome([])
    let run = try home.settled(arguments, needsSettings: false)
    #expect(run.code == 64)
    #expect(run.errors.contains(message))
  }

  // MARK: - In between

  @Test func `automations that cannot be changed are debounced in between`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let path = "\(home.folder)/settle.yaml"
    let before = try #require(TextFile.read(path))
    let dry = try home.settled(["import", "--in-between", "--dry-run"])
    #expect(dry.code == 0)
    #expect(TextFile.read(path) == before)
    #expect(dry.output.contains("\n+routes:\n"))

    let run = try home.settled(["import", "--in-between"])
    #expect(run.code == 0)
    #expect(run.errors.contains("  base_topic: zigbee2mqtt-direct\n"))
    #expect(run.errors.contains("  discovery_topic: zigbee2mqtt-direct-discovery\n"))
    #expect(run.errors.contains("  status_topic: homeassistant/status\n"))
    #expect(try #require(TextFile.read(path)).hasPrefix(before))
    let again = try home.settled(["import", "--in-between"])
    #expect(again.output.hasSuffix(" routes are there already\n"))
    #expect(try home.settled(["import"]).code == 0)
    #expect(try home.settled(["check"]).code == 0)

    try home.startGateway()
    let client = home.client
    for level in 1...9 {
      client.publish("zigbee2mqtt/Essplatz/set", #"{"brightness":\#(level)}"#)
      client.publish("zigbee2mqtt/Wohnzimmer/Decke/set", #"{"brightness":\#(level)}"#)
    }
    for topic in ["zigbee2mqtt-direct/Essplatz/set", "zigbee2mqtt-direct/Wohnzimmer/Decke/set"] {
      _ = client.waitFor { $0.contains { $0.topic == topic } }
      #expect(client.texts(on: topic) == [#"{"brightness":9}"#])
    }
    // What is left of a movement does not follow its STOP, and two toggles are two messages.
    client.clear()
    let blind = ["{\"position\":40}", "{\"state\":\"STOP\"}", "{\"state\":\"TOGGLE\"}", "TOGGLE"]
    for payload in blind { client.publish("zigbee2mqtt/Essplatz/set", payload) }
    client.publish("zigbee2mqtt/Essplatz/set", "ON")
    _ = client.waitFor { $0.contains { $0.topic.contains("direct") && $0.text == "ON" } }
    #expect(client.texts(on: "zigbee2mqtt-direct/Essplatz/set") == blind.dropFirst() + ["ON"])
    client.publish("zigbee2mqtt-direct/Essplatz", #"{"state":"ON"}"#, retain: true)
    client.publish("zigbee2mqtt-direct/Wohnzimmer/Decke", #"{"state":"OFF"}"#, retain: true)
    client.publish("zigbee2mqtt-direct/bridge/state", #"{"state":"online"}"#, retain: true)
    for (topic, text) in [
      ("zigbee2mqtt/Essplatz", #"{"state":"ON"}"#),
      ("zigbee2mqtt/Wohnzimmer/Decke", #"{"state":"OFF"}"#),
      ("zigbee2mqtt/bridge/state", #"{"state":"online"}"#),
    ] {
      #expect(client.waitFor { $0.contains { $0.topic == topic && $0.text == text } }, "\(topic)")
    }
  }
  private let lamp = "light/0x1/light/config"

  /// Announces a lamp as Zigbee2MQTT does at this base topic.
  private func announce(_ base: String, on prefix: String, with client: RecordingSubscriber) {
    client.publish(
      "\(prefix)/\(lamp)",
      #"{"command_topic":"\#(base)/Essplatz/set","state_topic":"\#(base)/Essplatz","#
        + #""unique_id":"0x1_light_\#(base)","origin":{"name":"Zigbee2MQTT"}}"#,
      retain: true
    )
  }

  @Test func `announcements are carried in between, and nothing is left after an undo`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let path = "\(home.folder)/settle.yaml"
    let before = try #require(TextFile.read(path))
    #expect(try home.settled(["import", "--in-between"]).code == 0)
    #expect(try home.settled(["import"]).code == 0)
    try home.startGateway()
    let client = home.client
    let prefix = "zigbee2mqtt-direct-discovery"
    announce("zigbee2mqtt-direct", on: prefix, with: client)
    let carried =
      #"{"command_topic":"zigbee2mqtt/Essplatz/set","state_topic":"zigbee2mqtt-direct/Essplatz","#
      + #""unique_id":"0x1_light_zigbee2mqtt","origin":{"name":"Zigbee2MQTT"},"availability":[{"topic":"zigbee2mqtt/bridge/state","#
      + #""value_template":"{{ value_json.state if value_json is defined else value }}"}],"#
      + #""availability_mode":"all"}"#
    #expect(client.waitFor("homeassistant/\(lamp)", carried))
    client.publish("zigbee2mqtt-direct/bridge/state", #"{"state":"online"}"#, retain: true)
    #expect(client.waitFor("zigbee2mqtt/bridge/state", #"{"state":"online"}"#))
    let checked = try home.settled(["import", "--in-between"])
    #expect(checked.code == 0)
    #expect(
      checked.errors.hasSuffix(
        "Zigbee2MQTT has moved to zigbee2mqtt-direct. Its 1 announcement to Home Assistant: "
          + "all carried from \(prefix) to homeassistant.\n"
      )
    )

    // First the settings are as before.
    let undo = ["import", "--in-between", "--undo"]
    let dry = try home.settled(undo + ["--dry-run"])
    #expect(dry.code == 0)
    #expect(dry.output.contains("\n-routes:\n"))
    #expect(TextFile.read(path) != before)
    let first = try home.settled(undo)
    #expect(first.code == 0)
    #expect(TextFile.read(path) == before)
    #expect(first.errors.contains("  base_topic: zigbee2mqtt\n"))
    #expect(first.errors.contains("  discovery_topic: homeassistant\n"))

    // Nothing is removed while Zigbee2MQTT has not moved back, or a gateway still carries.
    let early = try home.settled(undo)
    #expect(early.code == 69)
    #expect(early.errors.contains("Zigbee2MQTT is still at zigbee2mqtt-direct"))
    client.publish("zigbee2mqtt-direct/bridge/state", #"{"state":"offline"}"#, retain: true)
    #expect(client.waitFor("zigbee2mqtt/bridge/state", #"{"state":"offline"}"#))
    let carrying = try home.settled(undo)
    #expect(carrying.code == 69)
    #expect(carrying.errors.contains("a gateway still carries announcements"))
    #expect(!client.messages.contains { $0.topic == "homeassistant/\(lamp)" && $0.text.isEmpty })

    home.stopGateway()
    // A scene that was removed meanwhile; Home Assistant forgets an entity without announcement.
    let gone = "homeassistant/scene/0x1/scene_1/config"
    let scene = #"{"command_topic":"x","state_topic":"zigbee2mqtt-direct/E"}"#
    client.publish(gone, scene, retain: true)
    let waiting = try home.settled(undo)
    #expect(waiting.code == 69)
    #expect(waiting.errors.contains("Zigbee2MQTT has not announced its devices again"))
    announce("zigbee2mqtt", on: "homeassistant", with: client)
    let last = try home.settled(undo)
    #expect(last.code == 0, "\(last.errors)")
    #expect(last.output == "1 retained message removed from the broker\n")
    #expect(client.waitFor(gone, ""))
    #expect(try home.settled(undo).output == "0 retained messages removed from the broker\n")
    #expect(!client.messages.contains { $0.topic == "homeassistant/\(lamp)" && $0.text.isEmpty })
  }

  @Test func `an undo keeps other routes`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let path = "\(home.folder)/settle.yaml"
    let before =
      try #require(TextFile.read(path))
      + "routes:\n  - {from: a, to: b}  # mine\n  - {from: c, to: d, policy: none}\n"
    try TextFile.write(before + "limits: {pending: 9}\n", to: path)
    #expect(try home.settled(["import", "--in-between"]).code == 0)
    #expect(TextFile.read(path) != before + "limits: {pending: 9}\n")
    #expect(try home.settled(["import", "--in-between", "--undo"]).code == 0)
    #expect(TextFile.read(path) == before + "limits: {pending: 9}\n")
  }

  @Test func `once the gateway is killed the bridge does not say online`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    #expect(try home.settled(["import", "--in-between"]).code == 0)
    #expect(try home.settled(["import"]).code == 0)
    try home.startGateway()
    let (inner, outer) = ("zigbee2mqtt-direct/bridge/state", "zigbee2mqtt/bridge/state")
    let online = #"{"state":"online"}"#
    home.client.publish(inner, online, retain: true)
    #expect(home.client.waitFor(outer, online))

    home.client.clear()
    home.stopGateway(by: SIGKILL)
    #expect(home.client.waitFor(outer, #"{"state":"offline"}"#))

    // And after a restart it says what Zigbee2MQTT says, whatever is published last.
    home.client.clear()
    try home.startGateway()
    #expect(home.client.waitFor(outer, online))
    home.client.clear()
    home.stopGateway(by: SIGTERM)
    #expect(home.client.waitFor(outer, #"{"state":"offline"}"#))
  }
}

extension RecordingSubscriber {
  /// Whether this message arrives, or has arrived.
  fileprivate func waitFor(_ topic: String, _ text: String) -> Bool {
    waitFor { $0.contains { $0.topic == topic && $0.text == text } }
  }
}
