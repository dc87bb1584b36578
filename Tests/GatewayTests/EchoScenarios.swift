// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// 5, continued: the gateway's own topics.
@Suite(.blocking) struct EchoScenarios {
  private let target = "settle/desk-lamp/brightness"

  @Test func `the target is shown at once, before anything is sent`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/set", #"{"brightness":40}"#)

    #expect(witness.waitFor(target, "40"))
    #expect(witness.waitFor("settle/desk-lamp", #"{"brightness":40}"#))
    #expect(witness.waitFor { $0.contains { $0.topic == "settle/desk-lamp/info" } })
    let info = try JSONParser.parse(witness.texts(on: "settle/desk-lamp/info").last ?? "")
    #expect(info["brightness"]?["target"] == 40)
    #expect(info["brightness"]?["actual"] == .null)
    #expect(info["brightness"]?["phase"] == "accepted")
    #expect(witness.texts(on: "zigbee2mqtt/desk_lamp/set").isEmpty)
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/desk-lamp/#"])
    #expect(late.waitFor { $0.contains { $0.topic == target && $0.text == "40" && $0.retained } })
  }

  @Test func `a target that changes quickly is shown ten times a second, and at the end`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()

    let start = EventLoop.now()
    let isShownOften = { witness.messages.count { $0.topic == self.target } >= 6 }
    Pace.every(.milliseconds(5), count: 12_000, until: isShownOften) { number in
      witness.publish("settle/desk-lamp/brightness/set", "\(number % 200)")
    }
    witness.publish("settle/desk-lamp/brightness/set", "250")

    #expect(witness.waitFor(target, "250"))
    let shown = witness.messages.filter { $0.topic == target }
    let last = try #require(shown.last?.at)
    let tenths = Int(start.duration(to: last) / .milliseconds(100))
    #expect(shown.count <= tenths + 2)
    #expect(shown.count >= 6)
    // The distances are PureSurfaceTests' matter: here they are those of the arrivals.
  }

  @Test func `after a cancel the target is the actual value again`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":100}"#)
    #expect(witness.waitFor(target, "100"))

    witness.publish("settle/desk-lamp/brightness/set", "40")
    #expect(witness.waitFor(target, "40"))
    witness.publish("settle/desk-lamp/brightness/cancel", "")

    #expect(witness.texts(on: target, count: 3) == ["100", "40", "100"])
    let event = try #require(witness.texts(on: target + "/event", count: 1).first)
    #expect(try JSONParser.parse(event)["phase"] == "cancelled")
  }

  @Test func `a cancelled target that was never known is cleared`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/brightness/set", "40")
    #expect(witness.waitFor(target, "40"))
    witness.publish("settle/desk-lamp/brightness/cancel", "")

    #expect(witness.texts(on: target, count: 2) == ["40", ""])
    #expect(witness.waitFor("settle/desk-lamp", "{}"))
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/#"])
    #expect(late.waitFor { $0.contains { $0.topic == "settle/status" } })
    #expect(late.texts(on: target).isEmpty)
  }

  @Test func `booleans are shown as true and false`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()

    witness.publish("settle/desk-lamp/power/set", "ON")

    #expect(witness.waitFor("settle/desk-lamp/power", "true"))
    #expect(witness.waitFor("settle/desk-lamp", #"{"power":true}"#))
  }

  @Test func `on get, a device's targets are published again`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("settle/desk-lamp/power/set", "ON")
    #expect(witness.waitFor("settle/desk-lamp", #"{"power":true}"#))

    witness.publish("settle/desk-lamp/get", "")

    #expect(
      witness.texts(on: "settle/desk-lamp", count: 2) == [#"{"power":true}"#, #"{"power":true}"#]
    )
  }

  @Test func `flush by MQTT ends the quiet period`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()
    witness.publish("settle/desk-lamp/brightness/set", "40")

    witness.publish("settle/desk-lamp/brightness/flush", "now")

    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":40}"#))
  }

  @Test func `the status is online, and offline after a kill`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/status"])
    #expect(late.waitFor { $0.contains { $0.text == "online" && $0.retained } })

    try bench.running().signal(SIGKILL)

    #expect(witness.waitFor("settle/status", "offline"))
    #expect(try bench.running().waitForExit() == -SIGKILL)
    // The next one takes over the socket file that was left behind.
    try bench.startGateway()
    #expect(try bench.client().ask(#"{"get":"desk-lamp/power","id":1}"#)["id"] == 1)
    #expect(try bench.running().lines(containing: "Another gateway").isEmpty)
  }

  @Test(arguments: ["", ", protocol: 3.1.1"])
  func `a living gateway puts its status back when another one sets it to offline`(
    mqtt: String
  ) throws {
    let bench = try Bench.running(devices: DeviceText.lamp(), mqtt: mqtt)
    let witness = try bench.witness()

    witness.publish("settle/status", "offline", retain: true)

    #expect(witness.texts(on: "settle/status", count: 3) == ["online", "offline", "online"])
    #expect(try bench.running().waitForLine(containing: "The status was set to offline") != nil)
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/status"])
    #expect(late.waitFor { $0.contains { $0.text == "online" && $0.retained } })
    try bench.running().signal(SIGTERM)
    #expect(try bench.running().waitForExit() == 0)
    #expect(
      witness.texts(on: "settle/status", count: 4) == ["online", "offline", "online", "offline"]
    )
  }

  @Test func `a second gateway on a base topic that is online warns`() throws {
    let bench = try Bench(devices: DeviceText.lamp(), mqtt: ", client_id: second")
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("settle/status", "online", retain: true)

    try bench.startGateway()

    #expect(
      try bench.running().waitForLine(containing: "Another gateway is online") != nil
    )
  }
}
