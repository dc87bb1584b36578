// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// Devices are announced to Home Assistant.
@Suite(.blocking) struct DiscoveryScenarios {
  private let topic = "homeassistant/device/desk-lamp/config"

  private func count(_ messages: [RecordingSubscriber.Message], _ topic: String) -> Int {
    messages.count { $0.topic == topic && !$0.payload.isEmpty }
  }

  @Test func `every device is announced when connected, and again on Home Assistant's birth`()
    throws
  {
    let bench = try Bench.running(devices: DeviceText.lamp(), settings: "discovery: {}")
    let witness = try bench.witness()
    #expect(witness.waitFor { $0.contains { $0.topic == topic } })
    let message = try #require(witness.messages.first { $0.topic == topic })
    #expect(message.text.contains(#""command_topic":"settle/desk-lamp/power/light/set""#))

    witness.publish("homeassistant/status", "offline")
    witness.publish("homeassistant/status", "online")
    #expect(witness.waitFor { count($0, topic) == 2 })
    // It is retained for later subscribers.
    let late = try RecordingSubscriber(port: bench.broker.port, filters: [topic])
    #expect(late.waitFor(count: 1))
    #expect(late.messages.first?.retained == true)
  }

  @Test func `a command that fails shows as a problem of its device until a newer one does not`()
    throws
  {
    let bench = try Bench.running(
      devices: """
        lamp:
          properties:
            power: {type: boolean, command: {topic: lamp/set}, state: {topic: lamp}, \
        confirm: {within: 3s}, policy: {delay: 0}}
        plug: {properties: {power: {type: boolean, command: {topic: plug/set}}}}
        """,
      settings: "discovery: {}"
    )
    let witness = try bench.witness()
    let problem = "settle/status/lamp/problem"
    let none = #"{"state":"off","key":null,"value":null,"reason":null}"#
    #expect(witness.waitFor(problem, none))
    #expect(witness.waitFor { $0.contains { $0.topic == "homeassistant/device/lamp/config" } })
    let config = try #require(
      witness.messages.first { $0.topic == "homeassistant/device/lamp/config" }
    )
    #expect(config.text.contains(#""device_class":"problem""#))
    #expect(config.text.contains(#""entity_category":"diagnostic""#))

    witness.publish("settle/lamp/power/set", "true")
    let failed =
      #"{"state":"on","key":"lamp/power","value":true,"reason":"not confirmed within 3s"}"#
    #expect(witness.waitFor(problem, failed))
    let late = try RecordingSubscriber(port: bench.broker.port, filters: [problem])
    #expect(late.waitFor(count: 1))
    #expect(late.messages.map(\.text) == [failed])
    witness.publish("lamp/set", "ignored")
    witness.publish("settle/lamp/power/set", "false")
    #expect(witness.waitFor("lamp/set", "false"))
    witness.publish("lamp", "false")
    #expect(witness.waitFor { $0.last { $0.topic == problem }?.text == none })
    #expect(witness.messages.allSatisfy { $0.topic != "settle/status/plug/problem" })
  }

  @Test func `the announcement of a removed device is removed`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), settings: "discovery: {}")
    let witness = try bench.witness()
    #expect(witness.waitFor { $0.contains { $0.topic == topic } })

    try TextFile.write(
      DeviceText.lamp().replacing("desk-lamp", with: "floor"),
      to: bench.folder + "/devices/devices.yaml"
    )
    _ = try bench.client().ask(#"{"reload":true}"#)

    #expect(witness.waitFor(topic, ""))
    #expect(witness.waitFor { $0.contains { $0.topic == "homeassistant/device/floor/config" } })
  }

  @Test func `announcements of an earlier run for unknown devices are removed`() throws {
    let bench = try Bench(devices: DeviceText.lamp(), settings: "discovery: {format: component}")
    try bench.broker.start()
    let witness = try bench.witness()
    let own =
      #"{"o":{"name":"Settle"},"availability":[{"topic":"settle/status"},"#
      + #"{"topic":"settle/status/old"}],"command_topic":"x"}"#
    let other = #"{"o":{"name":"zigbee2mqtt"},"command_topic":"x"}"#
    witness.publish("homeassistant/device/old/config", Array(own.utf8), retain: true)
    witness.publish("homeassistant/light/desk-lamp/gone/config", Array(own.utf8), retain: true)
    witness.publish("homeassistant/device/0x1/config", Array(other.utf8), retain: true)
    try bench.startGateway()

    #expect(witness.waitFor("homeassistant/device/old/config", ""))
    #expect(witness.waitFor("settle/status/old", ""))
    #expect(witness.waitFor("homeassistant/light/desk-lamp/gone/config", ""))
    #expect(
      witness.waitFor { messages in
        ["light/desk-lamp/power", "binary_sensor/desk-lamp/problem"].allSatisfy { name in
          messages.contains { $0.topic == "homeassistant/\(name)/config" }
        }
      }
    )
    // The other program's stays, and so do this gateway's.
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["homeassistant/#"])
    #expect(late.waitFor(count: 3))
    #expect(
      late.messages.map(\.topic).sorted() == [
        "homeassistant/binary_sensor/desk-lamp/problem/config",
        "homeassistant/device/0x1/config", "homeassistant/light/desk-lamp/power/config",
      ]
    )
  }

  @Test func `the announcement of a removed property is removed, also one of an earlier run`()
    throws
  {
    func text(_ property: String) -> String {
      "desk-lamp: {properties: {\(property): {type: boolean, command: {topic: lamp/set}}}}"
    }
    let bench = try Bench(devices: text("now"), settings: "discovery: {}")
    try bench.broker.start()
    let witness = try bench.witness()
    let earlier =
      #"{"o":{"name":"Settle"},"availability":[{"topic":"settle/status"}],"#
      + #""cmps":{"old":{"p":"number"}}}"#
    witness.publish(topic, earlier, retain: true)
    try bench.startGateway()
    #expect(
      witness.waitFor {
        $0.contains {
          $0.topic == topic && $0.text.contains(#""now":{"p":"switch","unique"#)
            && $0.text.contains(#""old":{"p":"number"}"#)
        }
      }
    )

    try TextFile.write(text("new"), to: bench.folder + "/devices/devices.yaml")
    _ = try bench.client().ask(#"{"reload":true}"#)
    #expect(
      witness.waitFor {
        $0.contains {
          $0.topic == topic && $0.text.contains(#""now":{"p":"switch"}"#)
            && $0.text.contains(#""new":{"p":"switch","unique"#)
        }
      }
    )
  }

  @Test func `a device's availability is announced, and removed with the device`() throws {
    let text = """
      desk-lamp:
        availability: {topic: lamp/availability}
        properties: {power: {type: boolean, command: {topic: lamp/set}}}
      """
    let bench = try Bench.running(devices: text, settings: "discovery: {}")
    let witness = try bench.witness()
    let status = "settle/status/desk-lamp"
    #expect(witness.waitFor(status, "online"))

    witness.publish("lamp/availability", "offline")
    #expect(witness.waitFor(status, "offline"))
    // A word that is neither changes nothing, and the same word is not told twice.
    witness.publish("lamp/availability", "asleep")
    witness.publish("lamp/availability", "offline")
    witness.publish("lamp/availability", "online")
    #expect(witness.waitFor { $0.last { $0.topic == status }?.text == "online" })
    #expect(witness.texts(on: status) == ["online", "offline", "online"])

    try TextFile.write(
      text.replacing("desk-lamp", with: "floor"),
      to: bench.folder + "/devices/devices.yaml"
    )
    _ = try bench.client().ask(#"{"reload":true}"#)
    #expect(witness.waitFor(status, ""))
    #expect(witness.waitFor("settle/status/floor", "online"))
  }

  @Test func `an offline device does not appear online when the gateway restarts`() throws {
    let bench = try Bench(
      devices: """
        desk-lamp:
          availability: {topic: lamp/availability}
          properties: {power: {type: boolean, command: {topic: lamp/set}}}
        """,
      settings: "discovery: {}"
    )
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("lamp/availability", "offline", retain: true)
    try bench.startGateway()

    #expect(witness.waitFor("settle/status/desk-lamp", "offline"))
    #expect(witness.texts(on: "settle/status/desk-lamp") == ["offline"])
  }

  // MARK: - Lamps

  private let light = "settle/desk-lamp/power/light"

  @Test func `a lamp that is off and swept gets one message`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp(policy: "{delay: 1h, max_wait: none}"),
      settings: "discovery: {}"
    )
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF","brightness":10}"#, retain: true)
    #expect(
      witness.waitFor(light, #"{"state":"OFF","brightness":10}"#)
    )

    for level in 1...39 {
      witness.publish("\(light)/set", #"{"state":"ON","brightness":\#(level),"transition":1}"#)
    }
    let client = try bench.client()
    var wait = Wait()
    var pending = ""
    while !pending.contains(#""value":39"#) {
      try #require(wait.remaining() != nil)
      client.send(#"{"pending":"desk-lamp/brightness"}"#)
      pending = try #require(client.nextLine())
    }
    // The hand has come to rest.
    _ = try client.ask(#"{"flush":"desk-lamp/*"}"#)
    let command = #"{"state":"ON","brightness":39,"transition":1}"#
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", command))
    #expect(witness.texts(on: "zigbee2mqtt/desk_lamp/set") == [command])
    #expect(witness.waitFor(light, #"{"state":"ON","brightness":39}"#))
  }

  @Test func `a lamp shows its color mode, and nothing follows from what it cannot do`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), settings: "discovery: {}")
    let witness = try bench.witness()
    witness.publish("\(light)/set", #"{"state":"ON","color":{"x":0.7,"y":0.3}}"#)
    #expect(
      witness.waitFor(light, #"{"state":"ON","color_mode":"xy","color":{"x":0.7,"y":0.3}}"#)
    )
    witness.publish("\(light)/set", #"{"state":"ON","color_temp":300}"#)
    #expect(witness.waitFor(light, #"{"state":"ON","color_mode":"color_temp","color_temp":300}"#))

    for payload in ["ON", "{}", #"{"color":"mauve"}"#] {
      witness.publish("\(light)/set", payload)
    }
    witness.publish("settle/desk-lamp/color/light/set", #"{"state":"ON"}"#)
    witness.publish("\(light)/set", #"{"state":"OFF"}"#)
    let last = #"{"state":"OFF","color_mode":"color_temp","color_temp":300}"#
    #expect(witness.waitFor(light, last))
    #expect(witness.texts(on: light).last == last)
  }

  @Test func `the state of a lamp that is removed is removed`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), settings: "discovery: {}")
    let witness = try bench.witness()
    witness.publish("\(light)/set", #"{"state":"ON"}"#)
    #expect(witness.waitFor(light, #"{"state":"ON"}"#))

    try TextFile.write(
      DeviceText.lamp().replacing("desk-lamp", with: "floor"),
      to: bench.folder + "/devices/devices.yaml"
    )
    _ = try bench.client().ask(#"{"reload":true}"#)
    #expect(witness.waitFor(light, ""))
  }

  @Test func `a thousand devices are all announced, even to a slow broker`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1000, policy: "{delay: 100ms, max_wait: none}"),
      settings: "discovery: {}"
    )
    let witness = try bench.witness()
    #expect(
      witness.waitFor { messages in
        Set(messages.lazy.map(\.topic).filter { $0.hasPrefix("homeassistant/device/") }).count
          == 1000
      }
    )
  }

  @Test func `without discovery nothing is announced`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("homeassistant/status", "online")
    let client = try bench.client()
    _ = try client.ask(#"{"key":"desk-lamp/brightness","set":4,"now":true}"#)
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":4}"#))
    #expect(count(witness.messages, topic) == 0)
  }
}
