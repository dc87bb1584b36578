// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Devices, values and commands.
@Suite(.blocking) struct DeviceScenarios {
  private let command = "zigbee2mqtt/desk_lamp/set"
  private let state = "zigbee2mqtt/desk_lamp"

  /// A lamp whose state the gateway has heard.
  private func lamp(_ text: String, mqtt: String = "", brightness: Int) throws -> Bench {
    let bench = try Bench(devices: text, mqtt: mqtt)
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish(
      "zigbee2mqtt/desk_lamp",
      #"{"state":"ON","brightness":\#(brightness)}"#,
      retain: true
    )
    try bench.startGateway()
    try #require(witness.waitFor("settle/desk-lamp/brightness", "\(brightness)"))
    return bench
  }

  private func events(_ witness: RecordingSubscriber, _ key: String, count: Int) throws
    -> [JSONValue]
  {
    try witness.texts(on: "settle/\(key)/event", count: count).map { try JSONParser.parse($0) }
  }

  @Test func `steps count from the state, then from the pending value, and are clamped`() throws {
    // Values leave when they are flushed, however late the next step arrives.
    let slow = DeviceText.lamp(policy: "{delay: 1h, max_wait: none}")
    let bench = try lamp(slow, brightness: 100)
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/brightness/step", "+10")
    witness.publish("settle/desk-lamp/brightness/step", "5")
    witness.publish("settle/desk-lamp/brightness/step", "-1")
    witness.publish("settle/desk-lamp/brightness/flush", "")
    #expect(witness.texts(on: command, count: 1) == [#"{"brightness":114}"#])

    witness.publish("settle/desk-lamp/brightness/step", "1000")
    witness.publish("settle/desk-lamp/brightness/flush", "")
    #expect(witness.texts(on: command, count: 2).last == #"{"brightness":254}"#)
    witness.publish("settle/desk-lamp/brightness/step", "-1000")
    witness.publish("settle/desk-lamp/brightness/flush", "")
    #expect(witness.texts(on: command, count: 3).last == #"{"brightness":0}"#)
  }

  @Test func `toggle inverts the state, and repeated toggles invert the pending value`() throws {
    let bench = try lamp(DeviceText.lamp(), brightness: 100)
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/power/toggle", "anything")
    #expect(witness.texts(on: command, count: 1) == [#"{"state":"OFF"}"#])
    // Its target, on the way and unconfirmed, is what the next one flips.
    witness.publish("settle/desk-lamp/power/toggle", "")
    #expect(witness.texts(on: command, count: 2).last == #"{"state":"ON"}"#)
  }

  @Test func `without a state topic steps count from the last value sent`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    let witness = try bench.witness()

    witness.publish("settle/dev0/level/step", "5")
    let refusal = try bench.running().waitForLine(containing: "Message rejected")
    #expect(refusal?.contains("settle/dev0/level/step") == true)
    let rejected = try events(witness, "dev0/level", count: 1)
    #expect(rejected.first?["phase"] == "rejected")

    witness.publish("settle/dev0/level/set", "50")
    #expect(witness.waitFor("cmd/dev0", #"{"v":50}"#))
    witness.publish("settle/dev0/level/step", "5")
    #expect(witness.waitFor("cmd/dev0", #"{"v":55}"#))
  }

  @Test func `a step without a known state waits for the requested state`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/get", DeviceText.lampRequest))
    let client = try bench.client()

    client.send(#"{"key":"desk-lamp/brightness","step":5,"id":"s","now":true}"#)
    witness.publish("settle/desk-lamp/power/set", "ON")
    #expect(witness.waitFor(command, #"{"state":"ON"}"#))
    witness.publish(state, #"{"brightness":30}"#)

    #expect(try client.next { $0["id"] == "s" }["value"] == 35)
    #expect(witness.waitFor(command, #"{"brightness":35}"#))
  }

  @Test func `a step whose state does not arrive is refused with the reason`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let client = try bench.client()

    let start = EventLoop.now()
    let reply = try client.ask(#"{"key":"desk-lamp/brightness","step":5,"id":"s"}"#)

    #expect(reply["phase"] == "rejected")
    #expect(reply["reason"]?.string?.isEmpty == false)
    #expect(start.duration(to: EventLoop.now()) >= .seconds(2))
  }

  @Test func `a final value equal to the known state is not sent`() throws {
    let bench = try lamp(DeviceText.lamp(), brightness: 100)
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/brightness/set", "90")
    witness.publish("settle/desk-lamp/brightness/set", "100")

    let event = try #require(try events(witness, "desk-lamp/brightness", count: 1).first)
    #expect(event["phase"] == "unchanged")
    #expect(event["collapsed"] == 1)
    witness.publish("settle/desk-lamp/brightness/set", "99")
    #expect(witness.texts(on: command, count: 1) == [#"{"brightness":99}"#])
  }

  @Test(arguments: [#"{"level":7,"power":false}"#, #"{"power":false,"level":7}"#])
  func `in a device-level set an urgent member ends nothing of its own message`(
    payload: String
  ) throws {
    let bench = try Bench.running(
      devices: """
        fan:
          properties:
            power: {type: boolean, urgent: [false], ends: [level], command: {topic: fan/power, payload: $value}}
            level: {type: number, policy: {delay: 20ms}, command: {topic: fan/level, payload: $value}}

        """
    )
    let witness = try bench.witness()

    witness.publish("settle/fan/set", payload)

    #expect(witness.texts(on: "fan/power", count: 1) == ["false"])
    #expect(witness.texts(on: "fan/level", count: 1) == ["7"])
  }

  @Test func `an urgent value is sent at once and ends the commands that it overrides`() throws {
    let bench = try Bench.running(
      devices: """
        blind:
          profile: zigbee2mqtt/cover
          topic: zigbee2mqtt/blind
          properties:
            position: {policy: {delay: 60s, max_wait: none}}

        """
    )
    let witness = try bench.witness()
    witness.publish("settle/blind/position/set", "50")
    witness.publish("settle/blind/command/set", "STOP")

    #expect(witness.texts(on: "zigbee2mqtt/blind/set", count: 1) == [#"{"state":"STOP"}"#])
    let cancelled = try #require(try events(witness, "blind/position", count: 1).first)
    #expect(cancelled["phase"] == "cancelled")
    #expect(cancelled["reason"] == "urgent")
    // An action has no target, and its alias is a topic too.
    witness.publish("settle/blind/stop/set", "STOP")
    #expect(witness.texts(on: "zigbee2mqtt/blind/set", count: 2).count == 2)
    #expect(witness.texts(on: "settle/blind/command").isEmpty)
    let last = try #require(try events(witness, "blind/command", count: 2).last)
    #expect(last["phase"] == "sent")
  }

  @Test func `a device's set is sent as one message with its options`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()

    witness.publish(
      "settle/desk-lamp/set",
      #"{"transition":2,"state":"on","brightness":128,"color_temp":300}"#
    )

    let text = try #require(witness.texts(on: command, count: 1).first)
    let json = try JSONParser.parse(text)
    #expect(json["state"] == "ON")
    #expect(json["brightness"] == 128)
    #expect(json["color_temp"] == 300)
    #expect(json["transition"] == 2)
    // Color and color temperature exclude each other: the newer wins.
    witness.publish("settle/desk-lamp/set", ##"{"color_temp":200}"##)
    witness.publish("settle/desk-lamp/set", ##"{"color":"#ff0000"}"##)
    let second = try JSONParser.parse(witness.texts(on: command, count: 2).last ?? "")
    #expect(second["color"]?["x"] != nil)
    #expect(second["color_temp"] == nil)
  }

  @Test func `a device's set that finds no room for all of it is refused whole`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), settings: "limits: {pending: 2}")
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/set", #"{"state":"on","brightness":128,"color_temp":300}"#)

    let refusal = try bench.running().waitForLine(containing: "Message rejected")
    #expect(refusal?.contains(#"kind="too many keys""#) == true)
    #expect(refusal?.contains("3 more values would be pending") == true, "\(refusal ?? "")")
    #expect(refusal?.contains("room for 2") == true, "\(refusal ?? "")")
    witness.publish("settle/desk-lamp/set", #"{"state":"on","brightness":127}"#)
    #expect(witness.texts(on: command, count: 1) == [#"{"state":"ON","brightness":127}"#])
  }

  @Test(arguments: [
    #"{"power":true,"brightness":999,"transition":1}"#,
    #"{"state":"on","brightness":1,"bright":2,"power":"on"}"#,
  ])
  func `a refused set is reported on the topic of each property that it names`(payload: String)
    throws
  {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/set", payload)
    witness.publish("settle/desk-lamp/color_temp/set", "300")

    #expect(try events(witness, "desk-lamp/color_temp", count: 1).first?["phase"] == "sent")
    for key in ["desk-lamp/power", "desk-lamp/brightness"] {
      let told = try events(witness, key, count: 1)
      #expect(told.map { $0["phase"] } == ["rejected"])
      #expect(told.first?["key"] == .string(key))
      #expect(told.first?["source"] == "mqtt")
      #expect(told.first?["reason"]?.string?.contains("bright") == true)
    }
    let topics = witness.messages.map(\.topic)
    #expect(Set(topics.filter { $0.hasSuffix("/event") }).count == 3)
  }

  @Test func `the device's own report confirms, and every phase is emitted`() throws {
    let bench = try lamp(DeviceText.lamp(), brightness: 100)
    let witness = try bench.witness()

    witness.publish(
      "settle/desk-lamp/brightness/set",
      #"{"value":40,"id":"tap-1","source":"panel"}"#
    )
    #expect(witness.waitFor(command, #"{"brightness":40}"#))
    #expect(try events(witness, "desk-lamp/brightness", count: 1).first?["phase"] == "sent")
    witness.publish(state, #"{"state":"ON","brightness":40}"#)

    let told = try events(witness, "desk-lamp/brightness", count: 2)
    #expect(told.map { $0["phase"] } == ["sent", "confirmed"])
    for event in told {
      #expect(event["id"] == "tap-1")
      #expect(event["source"] == "panel")
      #expect(event["key"] == "desk-lamp/brightness")
      #expect(event["value"] == 40)
      #expect(event["attempt"] == 1)
      #expect(event["at"]?.string?.hasSuffix("Z") == true)
    }
  }

  @Test func `an unconfirmed command fails, and the target is restored`() throws {
    let bench = try lamp(
      """
      desk-lamp:
        profile: zigbee2mqtt/light
        topic: zigbee2mqtt/desk_lamp
        properties:
          brightness: {policy: {delay: 20ms}, confirm: {within: 200ms, retries: 1}}

      """,
      brightness: 100
    )
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/brightness/set", "40")

    #expect(
      witness.texts(on: command, count: 2) == [#"{"brightness":40}"#, #"{"brightness":40}"#]
    )
    let told = try events(witness, "desk-lamp/brightness", count: 3)
    #expect(told.map { $0["phase"] } == ["sent", "sent", "failed"])
    #expect(told.last?["attempt"] == 2)
    #expect(told.last?["reason"]?.string?.contains("not confirmed") == true)
    let targets = witness.texts(on: "settle/desk-lamp/brightness", count: 3)
    #expect(targets == ["100", "40", "100"])
  }

  @Test func `a sender that requests a response gets the final event`() throws {
    let bench = try lamp(DeviceText.lamp(), brightness: 100)
    let witness = try bench.witness()

    witness.publish(
      "settle/desk-lamp/brightness/set",
      Array("40".utf8),
      responseTopic: "settle/reply/me",
      correlationData: [1, 2, 3]
    )
    #expect(witness.waitFor(command, #"{"brightness":40}"#))
    #expect(witness.texts(on: "settle/reply/me").isEmpty)
    witness.publish(state, #"{"brightness":40}"#)

    #expect(witness.texts(on: "settle/reply/me", count: 1).count == 1)
    let answer = try #require(witness.messages.first { $0.topic == "settle/reply/me" })
    #expect(answer.correlationData == [1, 2, 3])
    #expect(try JSONParser.parse(answer.text)["phase"] == "confirmed")
  }

  @Test(arguments: [
    ("settle/desk-lamp/brightness/set", "999"), ("settle/desk-lamp/brighness/set", "1"),
    ("settle/desk-lamp/set", #"{"powr":true}"#), ("settle/nothing/set", "{}"),
  ])
  func `a refusal is an answer too`(topic: String, payload: String) throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()

    witness.publish(
      topic,
      Array(payload.utf8),
      responseTopic: "settle/reply/me",
      correlationData: [7]
    )

    let text = try #require(witness.texts(on: "settle/reply/me", count: 1).first)
    #expect(try JSONParser.parse(text)["phase"] == "rejected")
    #expect(try JSONParser.parse(text)["reason"]?.string?.isEmpty == false)
    #expect(witness.messages.first { $0.topic == "settle/reply/me" }?.correlationData == [7])
  }

  @Test(arguments: [
    "zigbee2mqtt/bridge/request/permit_join", "zigbee2mqtt/hall_lamp/set", "settle/reply",
    "settle/replys/me", "settle/reply/me/set", "settle/reply/power/set", "other/reply/me",
    "answers",
  ])
  func `a reply goes nowhere else, and the change is made all the same`(topic: String) throws {
    let bench = try lamp(
      DeviceText.lamp(),
      mqtt: #", reply_topics: ["answers/+", "settle/+/+/set"]"#,
      brightness: 100
    )
    let witness = try bench.witness()
    for value in ["40", "50", "999"] {
      witness.publish(
        "settle/desk-lamp/brightness/set",
        Array(value.utf8),
        responseTopic: topic,
        correlationData: [1]
      )
    }
    witness.publish(
      "settle/desk-lamp/nothing/set",
      Array("1".utf8),
      responseTopic: topic,
      correlationData: [2]
    )
    #expect(witness.waitFor(command, #"{"brightness":50}"#))
    witness.publish(state, #"{"brightness":50}"#)

    // The replies that are allowed come after those that are not.
    witness.publish(
      "settle/desk-lamp/brightness/set",
      Array("60".utf8),
      responseTopic: "answers/me",
      correlationData: [3]
    )
    #expect(witness.waitFor(command, #"{"brightness":60}"#))
    witness.publish(state, #"{"brightness":60}"#)
    #expect(witness.texts(on: "answers/me", count: 1).count == 1)
    #expect(witness.texts(on: topic).isEmpty)
    #expect(try bench.running().lines(containing: "No reply sent").count == 1)
  }

  @Test func `a topic that is too long for a key is rejected in words`() throws {
    let bench = try lamp(DeviceText.lamp(), brightness: 100)
    let witness = try bench.witness()
    for (number, name) in [
      String(repeating: "d", count: 60_000), "desk-lamp/" + String(repeating: "p", count: 503),
      "desk-lamp/" + String(repeating: "p", count: 502),
    ].enumerated() {
      witness.publish(
        name.contains("/") ? "settle/\(name)/set" : "settle/\(name)/brightness/set",
        Array("1".utf8),
        responseTopic: "settle/reply/\(number)",
        correlationData: [1]
      )
    }
    func reason(_ number: Int) throws -> String? {
      let text = try #require(witness.texts(on: "settle/reply/\(number)", count: 1).first)
      #expect(text.utf8.count < 2000)
      return try JSONParser.parse(text)["reason"]?.string
    }
    #expect(try reason(0) == "the topic names a key of 60011 bytes; 512 are allowed")
    #expect(try reason(1) == "the topic names a key of 513 bytes; 512 are allowed")
    #expect(try reason(2)?.contains("has no property") == true)
  }

  @Test func `nothing long is kept for a reply, and the change is made all the same`() throws {
    let bench = try lamp(DeviceText.lamp(), brightness: 100)
    let witness = try bench.witness()
    for (value, topic, size) in [
      ("30", "settle/reply/\(String(repeating: "a", count: 1012))", 1),
      ("40", "settle/reply/a", 1025), ("50", "settle/reply/b", 1024),
    ] {
      witness.publish(
        "settle/desk-lamp/brightness/set",
        Array(value.utf8),
        responseTopic: topic,
        correlationData: [UInt8](repeating: 7, count: size)
      )
    }
    #expect(witness.waitFor(command, #"{"brightness":50}"#))
    witness.publish(state, #"{"brightness":50}"#)
    #expect(witness.texts(on: "settle/reply/b", count: 1).count == 1)
    #expect(witness.messages.count { $0.topic.hasPrefix("settle/reply/a") } == 0)
    let lines = try bench.running().lines(containing: "is too long")
    #expect(lines.count == 2)
    #expect(lines.last?.contains("bytes=1025") == true)
    #expect(lines.allSatisfy { $0.contains("limit=1024") && $0.utf8.count < 400 })
  }

  @Test func `an absent device gets its newest value when it is back`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 20ms}"))
    let witness = try bench.witness()
    let client = try bench.client()
    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"offline"}"#, retain: true)
    for value in 1...3 {
      _ = try client.ask(#"{"key":"desk-lamp/brightness","set":\#(value),"now":true}"#)
    }

    guard case .array(let rows) = try client.ask(#"{"pending":"*"}"#)["pending"] else {
      Issue.record("no list of what is pending")
      return
    }
    #expect(rows.first?["waits"] == "offline")
    #expect(rows.first?["value"] == 3)
    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"online"}"#, retain: true)

    #expect(witness.texts(on: command, count: 1) == [#"{"brightness":3}"#])
  }

  @Test func `a value that waits longer than its ttl expires`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 20ms}"))
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"offline"}"#)
    let client = try bench.client()

    let line = #"{"key":"desk-lamp/brightness","set":9,"id":"t","ttl":"300ms","wait":"sent"}"#
    #expect(try client.ask(line)["phase"] == "accepted")

    let end = try client.next { $0["id"] == "t" && $0["phase"] != "accepted" }
    #expect(end["phase"] == "expired")
    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"online"}"#)
    witness.publish("settle/desk-lamp/brightness/set", "10")
    #expect(witness.texts(on: command, count: 1) == [#"{"brightness":10}"#])
  }

  @Test func `a lamp that lost its power gets back what it had`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp(policy: "{delay: 20ms}", more: "  restore: true")
    )
    let (witness, client) = (try bench.witness(), try bench.client())
    let (lamp, availability) = ("zigbee2mqtt/desk_lamp", "zigbee2mqtt/desk_lamp/availability")
    func isAway(_ isAway: Bool) throws {
      let state = isAway ? "offline" : "online"
      witness.publish(availability, #"{"state":"\#(state)"}"#, retain: true)
      while AnswerScenarios.rows("devices", try client.ask(#"{"devices":"*"}"#))
        .first?["availability"]?.string != state
      {}
    }
    try isAway(false)
    let line = #"{"key":"desk-lamp/brightness","set":80,"id":"a","wait":"confirmed"}"#
    _ = try client.ask(line)
    #expect(witness.texts(on: command, count: 1) == [#"{"brightness":80}"#])
    witness.publish(lamp, #"{"state":"ON","brightness":80}"#)
    #expect(try client.next { $0["id"] == "a" && $0["phase"] == "confirmed" }["value"] == 80)

    try isAway(true)
    try isAway(false)
    witness.publish(lamp, #"{"state":"ON","brightness":254}"#)

    #expect(
      witness.texts(on: command, count: 2) == [#"{"brightness":80}"#, #"{"brightness":80}"#]
    )
    let log = try client.ask(#"{"log":"desk-lamp/brightness"}"#)
    #expect(AnswerScenarios.rows("log", log).last?["source"] == "restore")
  }
}
