// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Rapid changes become one command.
@Suite(.blocking) struct CollapseScenarios {
  @Test func `200 changes 5 ms apart are sent as the last one, once, after the delay`() throws {
    // On a busy machine two changes may come a good deal further apart.
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 1s, max_wait: none}"))
    let witness = try bench.witness()

    var last = EventLoop.now()
    Pace.every(.milliseconds(5), count: 200) { number in
      last = EventLoop.now()
      witness.publish("settle/desk-lamp/brightness/set", "\(number + 1)")
    }

    #expect(
      witness.texts(on: "zigbee2mqtt/desk_lamp/set", count: 1) == [#"{"brightness":200}"#]
    )
    let sent = try #require(witness.messages.first { $0.topic == "zigbee2mqtt/desk_lamp/set" })
    #expect(last.duration(to: sent.at) >= .seconds(1))
    #expect(!sent.retained)
    #expect(sent.qos == 1)
    // What its event says: every change but the last was collapsed.
    let event = try #require(
      witness.texts(on: "settle/desk-lamp/brightness/event", count: 1).first
    )
    let json = try JSONParser.parse(event)
    #expect(json["phase"] == "sent")
    #expect(json["value"] == 200)
    #expect(json["collapsed"] == 199)
    // A later change is a command of its own; nothing else came in between.
    witness.publish("settle/desk-lamp/brightness/set", "7")
    #expect(
      witness.texts(on: "zigbee2mqtt/desk_lamp/set", count: 2) == [
        #"{"brightness":200}"#, #"{"brightness":7}"#,
      ]
    )
  }

  @Test func `50 keys at once are sent as 50 commands, each with its last value`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(50, policy: "{delay: 1s, max_wait: none}")
    )
    let witness = try bench.witness()
    let client = try bench.client()

    let lines = (0..<20).flatMap { round in
      (0..<50).map { #"{"key":"dev\#($0)/level","set":\#(round * 100 + $0)}"# + "\n" }
    }
    client.send(bytes: Array(lines.joined().utf8))

    #expect(witness.waitFor { $0.count { $0.topic.hasPrefix("cmd/") } >= 50 })
    // One more key would come after all of them.
    #expect(try client.ask(#"{"pending":"*","id":"p"}"#)["phase"] == "accepted")
    let pending = try client.next { $0["id"] == "p" }
    #expect(pending["pending"] == [])
    let commands = witness.messages.filter { $0.topic.hasPrefix("cmd/") }
    #expect(commands.count == 50)
    for number in 0..<50 {
      #expect(witness.texts(on: "cmd/dev\(number)") == [#"{"v":\#(1900 + number)}"#])
    }
  }

  @Test func `an endless stream is sent once per max_wait, and its last value at the end`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: "{delay: 400ms, max_wait: 400ms}")
    )
    let witness = try bench.witness()

    let start = EventLoop.now()
    let hasLeftOften = { witness.texts(on: "cmd/dev0").count >= 4 }
    Pace.every(.milliseconds(10), count: 6000, until: hasLeftOften) { number in
      witness.publish("settle/dev0/level/set", "\(number + 1)", qos: 1)
    }
    witness.publish("settle/dev0/level/set", "77777", qos: 1)

    #expect(witness.waitFor("cmd/dev0", #"{"v":77777}"#))
    let commands = witness.messages.filter { $0.topic == "cmd/dev0" }
    #expect(commands.count >= 5)
    for (place, command) in commands.enumerated() {
      #expect(start.duration(to: command.at) >= .milliseconds(400) * (place + 1))
    }
  }

  @Test func `a leading policy sends the first value at once`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: "{delay: 60s, max_wait: none, leading: true}")
    )
    let witness = try bench.witness()

    witness.publish("settle/dev0/level/set", "1")
    #expect(witness.waitFor("cmd/dev0", #"{"v":1}"#))
    witness.publish("settle/dev0/level/set", "2")
    witness.publish("settle/dev0/level/set", "3")
    witness.publish("settle/dev0/level/flush", "")

    #expect(witness.texts(on: "cmd/dev0", count: 2) == [#"{"v":1}"#, #"{"v":3}"#])
  }
}
