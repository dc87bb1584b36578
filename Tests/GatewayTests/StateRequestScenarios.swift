// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// The gateway connects to a broker and asks devices for their states.
@Suite(.blocking) struct StateRequestScenarios {
  private static func lamps(_ count: Int, lane: String?) -> String {
    (0..<count).map { number in
      """
      lamp\(number):
        profile: zigbee2mqtt/light
        topic: zigbee2mqtt/lamp\(number)
      \(lane.map { "  lane: \($0)" } ?? "")

      """
    }.joined()
  }

  @Test func `a lamp is asked once for everything, at the rate of its lane, after commands`() throws
  {
    let bench = try Bench(
      devices: Self.lamps(12, lane: "mesh"),
      settings: "lanes: {mesh: {rate: 10/s, burst: 1}}"
    )
    try bench.broker.start()
    let mesh = try RecordingSubscriber(
      port: bench.broker.port,
      filters: ["zigbee2mqtt/+/get", "zigbee2mqtt/+/set"]
    )
    let lamp = try bench.witness()
    lamp.publish("zigbee2mqtt/lamp3", Self.state, retain: true)
    let start = EventLoop.now()
    try bench.startGateway()
    #expect(mesh.waitFor { $0.contains { $0.topic.hasSuffix("/get") } })
    lamp.publish("settle/lamp0/brightness/set", "40")

    // Retained is the state of one, and each of the others is asked for everything at once.
    #expect(mesh.waitFor { $0.count { $0.topic.hasSuffix("/get") } == 11 })
    let requests = mesh.messages.filter { $0.topic.hasSuffix("/get") }
    #expect(Set(requests.map(\.topic)).count == 11)
    #expect(!requests.contains { $0.topic == "zigbee2mqtt/lamp3/get" })
    #expect(
      requests.allSatisfy {
        $0.text == #"{"state":"","brightness":"","color_temp":"","color":""}"#
      }
    )
    // The command, which settles after 300 ms, did not wait for the ten that were left.
    let place = mesh.messages.firstIndex { $0.topic == "zigbee2mqtt/lamp0/set" }
    #expect((1...8).contains(place ?? 0))
    // Counted from before the first: that may have arrived late.
    for (place, message) in mesh.messages.enumerated() {
      #expect(start.duration(to: message.at) >= .milliseconds(100 * place))
    }
  }

  private static let state =
    #"{"state":"ON","brightness":1,"color_temp":300,"color":{"x":0.3,"y":0.3}}"#

  @Test func `eleven hundred lamps without a lane are all asked, and nothing is dropped`() throws {
    let bench = try Bench(devices: Self.lamps(1100, lane: nil))
    try bench.broker.start()
    let mesh = try RecordingSubscriber(port: bench.broker.port, filters: ["zigbee2mqtt/+/get"])
    try bench.startGateway()
    #expect(mesh.waitFor(count: 1100))
    #expect(Set(mesh.messages.map(\.topic)).count == 1100)
    #expect(try bench.running().lines(containing: "dropped") == [])
  }
}
