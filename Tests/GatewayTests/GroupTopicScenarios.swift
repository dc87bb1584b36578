// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import TestBroker
import Testing

/// A bridge's own group: one message on its topic reaches all members.
@Suite(.blocking) struct GroupTopicScenarios {
  private static func lamp(_ id: String) -> String {
    """
    \(id):
      topic: zigbee/\(id)
      merge: true
      options: [transition]
      properties:
        power:
          type: boolean
          on: "ON"
          off: "OFF"
          policy: {delay: 20ms}
          command: {topic: $topic/set, payload: {state: $value}}
          state: {topic: $topic, value: /state}
        level:
          type: number
          range: [0, 254]
          policy: {delay: 50ms, max_wait: none}
          command: {topic: $topic/set, payload: {brightness: $value}}
          state: {topic: $topic, value: /brightness}
          confirm: {within: 1s}

    """
  }

  private static let devices =
    lamp("desk") + lamp("sink") + lamp("table")
      + """
      groups:
        down: {members: [desk, sink, table], topic: zigbee/downstairs}

      """
  private static let lamps = ["desk", "sink", "table"]

  private static func commands(_ witness: RecordingSubscriber) -> [String] {
    lamps.flatMap { witness.texts(on: "zigbee/\($0)/set") }
  }

  @Test func `a change is one message, confirmed when all members are`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    let run = try SettleRun(
      ["set", "down", "power=on", "level=40", "--wait"],
      socketPath: bench.socketPath
    )
    #expect(witness.waitFor("zigbee/downstairs/set", #"{"state":"ON","brightness":40}"#))
    for lamp in Self.lamps {
      witness.publish("zigbee/\(lamp)", #"{"state":"ON","brightness":40}"#)
    }

    #expect(run.waitForExit() == 0, "\(run.errors)")
    #expect(run.lines.count { $0.phase == "confirmed" } == 2)
    #expect(witness.texts(on: "zigbee/downstairs/set").count == 1)
    #expect(Self.commands(witness).isEmpty)
    // The witness may receive the events later than the client its replies.
    let isAnnounced = witness.waitFor {
      $0.contains {
        $0.topic == "settle/desk/level/event" && $0.text.contains(#""phase":"sent""#)
          && $0.text.contains(#""group":"down""#)
      }
    }
    #expect(isAnnounced)
  }

  @Test func `a member that does not confirm gets another attempt of its own`() throws {
    let devices = Self.devices.replacing("{within: 1s}", with: "{within: 1s, retries: 1}")
    let bench = try Bench.running(devices: devices)
    let witness = try bench.witness()
    witness.publish("settle/down/set", #"{"level":40,"transition":0.1}"#)
    #expect(
      witness.waitFor("zigbee/downstairs/set", #"{"brightness":40,"transition":0.1}"#)
    )
    for lamp in ["desk", "sink"] { witness.publish("zigbee/\(lamp)", #"{"brightness":40}"#) }
    #expect(witness.waitFor("zigbee/table/set", #"{"brightness":40,"transition":0.1}"#))
    witness.publish("zigbee/table", #"{"brightness":40}"#)
    #expect(
      witness.waitFor {
        $0.contains {
          $0.topic == "settle/down/level/event" && $0.text.contains(#""phase":"confirmed""#)
        }
      }
    )
    #expect(Self.commands(witness).count == 1)
  }

  @Test func `a dry run and a description show the one message`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let dry = try SettleRun(
      ["set", "down/level", "40", "--dry-run", "--json"],
      socketPath: bench.socketPath
    )
    #expect(dry.waitForExit() == 0, "\(dry.errors)")
    #expect(dry.output.split(separator: "\n").count == 1)
    #expect(dry.output.contains(#""topic":"zigbee/downstairs/set""#), "\(dry.output)")
    #expect(dry.output.contains(#""key":"down/level""#), "\(dry.output)")
    #expect(dry.output.contains(#"["desk/level","sink/level","table/level"]"#), "\(dry.output)")

    let described = try SettleRun(["describe", "down/level"], socketPath: bench.socketPath)
    #expect(described.waitForExit() == 0, "\(described.errors)")
    #expect(
      described.output.contains("zigbee/downstairs/set (QoS 1), for all members at once"),
      "\(described.output)"
    )
  }
}
