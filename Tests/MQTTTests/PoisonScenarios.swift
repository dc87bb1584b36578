// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// A broker that drops the connection for a message, or because of something else.
@Suite(.blocking) struct PoisonScenarios {
  /// A client of a broker that closes the connection for a payload of `x` on the topic `poison`.
  private func bench(
    quarantine: ClosedRange<Duration>
  ) throws -> (broker: ScriptedBroker, harness: Harness) {
    let broker = try ScriptedBroker(
      .init { packet in
        packet.topic == "poison" && packet.body.last == UInt8(ascii: "x")
          ? [.close] : packet.politeAnswer
      }
    )
    var configuration = MQTTConfiguration.local(port: broker.port)
    configuration.quarantine = quarantine
    // An answer that is late on a busy machine is no loss.
    configuration.acknowledgementDeadline = .seconds(600)
    let harness = try Harness(configuration)
    #expect(harness.connect())
    return (broker, harness)
  }

  private func tries(_ broker: ScriptedBroker) -> Int {
    broker.packets.count { $0.topic == "poison" }
  }

  @Test func `the poison is tried three times, then held back, and others arrive`() throws {
    let (broker, harness) = try bench(quarantine: .seconds(600)...(.seconds(600)))
    harness.set("poison", "x")
    #expect(harness.run { harness.isSettled })
    #expect(tries(broker) == 3)
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
    #expect(harness.outcomes.contains { "\($0.outcome)".contains("quarantined: the broker drops") })
    #expect(broker.packets.contains { $0.topic == "a" })
    // The same is refused at once, and another payload is sent at once.
    harness.set("poison", "x")
    #expect(harness.isSettled)
    harness.set("poison", "y")
    #expect(harness.run { harness.isSettled })
    #expect(tries(broker) == 4)
    #expect(harness.client.statistics.losses == 3)
    #expect(harness.isConnected)
  }

  /// Lets the quarantine of the only topic end, which may have ended on a busy machine, and the
  /// client connect.
  private func awaitEnd(in harness: Harness) throws {
    #expect(harness.log.count(of: "Topic quarantined") > 0)
    if let until = harness.client.quarantinedTopics(at: EventLoop.now()).first?.until {
      harness.run(for: EventLoop.now().duration(to: until))
    }
    #expect(harness.run { harness.isConnected })
    #expect(harness.client.quarantinedTopics(at: EventLoop.now()).isEmpty)
  }

  @Test func `after the quarantine it is tried once, and then held back for longer`() throws {
    let (broker, harness) = try bench(quarantine: .seconds(2)...(.seconds(600)))
    harness.set("poison", "x")
    #expect(harness.run { harness.isSettled })
    for tried in 4...5 {
      try awaitEnd(in: harness)
      harness.set("poison", "x")
      #expect(harness.run { harness.isSettled })
      #expect(tries(broker) == tried)
    }
    for duration in ["2.0", "4.0", "8.0"] {
      #expect(harness.log.count(of: "\(duration) s") == 1)
    }
  }

  @Test func `a link that is cut while a message waits quarantines it for a time only`() throws {
    // The first three connections end after the message; the broker has nothing against it.
    let broker = try ScriptedBroker(
      .init { $0.topic == "a" && $0.connection <= 3 ? [.reset] : $0.politeAnswer }
    )
    var configuration = MQTTConfiguration.local(port: broker.port)
    configuration.quarantine = .milliseconds(500)...(.seconds(600))
    configuration.acknowledgementDeadline = .seconds(600)
    let harness = try Harness(configuration)
    #expect(harness.connect())
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
    try awaitEnd(in: harness)
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
    #expect(harness.outcomes.last?.outcome == .acknowledged)
  }

  @Test func `a link that is lost with the message and without it quarantines nothing`() throws {
    let broker = try ScriptedBroker(
      .init { packet in
        switch (packet.connection, packet.kind) {
        case (1...2, .publish): [.close]
        case (3...4, .connect): packet.politeAnswer + [.close]
        default: packet.politeAnswer
        }
      }
    )
    let harness = try Harness(.local(port: broker.port))
    #expect(harness.connect())
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
    #expect(harness.outcomes.last?.outcome == .acknowledged)
    #expect(harness.log.count(of: "Topic quarantined") == 0)
  }
}
