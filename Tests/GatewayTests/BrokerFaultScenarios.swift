// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// The broker stops, is killed and restarts.
@Suite(.blocking) struct BrokerFaultScenarios {
  private static let keys = 20

  /// Sends rising values to every key, 20 rounds a second; returns the last value.
  private func stream(
    _ rounds: Int,
    from first: Int,
    through client: ControlClient
  ) -> Int {
    Pace.every(.milliseconds(50), count: rounds) { round in
      let lines = (0..<Self.keys).map {
        #"{"key":"dev\#($0)/level","set":\#(first + round)}"# + "\n"
      }
      client.send(bytes: Array(lines.joined().utf8))
      client.passOverReplies()
    }
    return first + rounds - 1
  }

  private func expectRising(_ witness: RecordingSubscriber, last: Int) {
    let final = #"{"v":\#(last)}"#
    #expect(witness.waitFor { $0.count { $0.text == final } >= Self.keys })
    for number in 0..<Self.keys {
      let topic = "cmd/dev\(number)"
      #expect(witness.texts(on: topic).last == final)
      let values = witness.texts(on: topic).compactMap { Int($0.dropFirst(5).dropLast()) }
      #expect(values == values.sorted(), "\(topic)")
    }
  }

  private func bench() throws -> Bench {
    try Bench.running(
      devices: DeviceText.levels(Self.keys, policy: "{delay: 100ms, max_wait: 300ms}")
    )
  }

  @Test func `a broker that hangs past the deadline gets every final value`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let client = try bench.client()

    var last = stream(10, from: 1, through: client)
    bench.broker.pause()
    last = stream(75, from: last + 1, through: client)
    bench.broker.resume()
    last = stream(10, from: last + 1, through: client)

    expectRising(witness, last: last)
    #expect(
      try bench.running().lines(containing: "no acknowledgement within").isEmpty == false
    )
  }

  @Test func `a broker that is killed and restarted mid-stream gets every final value`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let client = try bench.client()

    var last = stream(10, from: 1, through: client)
    bench.broker.stop(signal: SIGKILL)
    last = stream(10, from: last + 1, through: client)
    try bench.broker.start()
    #expect(
      witness.waitFor { messages in
        messages.count { $0.topic == "settle/status" && $0.text == "online" } >= 2
      }
    )
    last = stream(10, from: last + 1, through: client)

    expectRising(witness, last: last)
  }

  @Test func `a value that settled while the broker was offline is sent once, as its newest value`()
    throws
  {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: "{delay: 20ms, max_wait: none}")
    )
    let client = try bench.client()
    bench.broker.stop(signal: SIGKILL)
    #expect(try bench.running().waitForLine(containing: "No connection") != nil)
    for value in 1...3 {
      _ = try client.ask(#"{"key":"dev0/level","set":\#(value),"now":true}"#)
    }
    let pending = try client.ask(#"{"pending":"*"}"#)["pending"]
    guard case .array(let rows) = pending, let row = rows.first else {
      Issue.record("nothing is pending: \(String(describing: pending))")
      return
    }
    #expect(row["value"] == 3)
    #expect(row["collapsed"] == 2)
    #expect(row["waits"] == "offline")
    try bench.broker.start()
    let fresh = try RecordingSubscriber(port: bench.broker.port, filters: ["cmd/#"])

    _ = try client.ask(#"{"key":"dev0/level","set":4,"id":"last","wait":"sent"}"#)
    _ = try client.next { $0["id"] == "last" && $0["phase"] == "sent" }

    #expect(fresh.waitFor("cmd/dev0", #"{"v":4}"#))
    let values = fresh.texts(on: "cmd/dev0")
    #expect(values == [#"{"v":4}"#] || values == [#"{"v":3}"#, #"{"v":4}"#])
  }

  @Test func `a restarted broker receives the status and the targets again`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("settle/desk-lamp/brightness/set", "40")
    #expect(witness.waitFor("settle/desk-lamp/brightness", "40"))
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":40}"#))

    // Without persistence it has forgotten what was retained.
    try bench.broker.restart(signal: SIGKILL)

    #expect(
      witness.waitFor { messages in
        messages.count { $0.topic == "settle/desk-lamp/brightness" } >= 2
          && messages.count { $0.topic == "settle/status" && $0.text == "online" } >= 2
      }
    )
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/+/brightness"])
    #expect(late.waitFor { $0.contains { $0.text == "40" && $0.retained } })
    // Its own status, as an older broker may have kept it, is nobody else's.
    #expect(try bench.running().lines(containing: "Another gateway").isEmpty)
  }
}
