// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// Receiving.
@Suite(.blocking) struct ReceiveScenarios {
  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `retained messages are delivered only where requested`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let broker = try TestBroker()
    try broker.start()
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("command/a", "stale", retain: true))
    #expect(other.publish("state/a", "known", retain: true))
    let harness = try Harness(.local(broker, version: version))
    var ignored: [String] = []
    harness.client.onRetainedIgnored = { ignored.append($0) }
    harness.client.subscribe([
      .init(filter: "command/#", wantsRetained: false, noLocal: true),
      .init(filter: "state/#", wantsRetained: true),
    ])
    #expect(harness.connect())
    #expect(harness.run { harness.received.count == 1 })
    #expect(other.publish("command/a", "live", retain: true))
    #expect(harness.run { harness.received.count == 2 })
    #expect(harness.received.map(\.text) == ["known", "live"])
    #expect(harness.received.map(\.retained) == [true, false])
    // MQTT 5 asks the broker not to send them; 3.1.1 knows them by their flag.
    #expect(ignored == (version == .v5 ? [] : ["command/a"]))
  }

  @Test func `own messages are not delivered with no-local`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    harness.client.subscribe([
      .init(filter: "a", wantsRetained: false, noLocal: true),
      .init(filter: "b", wantsRetained: false),
    ])
    #expect(harness.connect())
    harness.set("a", "1")
    harness.set("b", "2")
    #expect(harness.run { harness.isSettled && !harness.received.isEmpty })
    #expect(harness.received.map(\.text) == ["2"])
  }

  @Test func `a bridge sees the retain flag as published`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    harness.client.subscribe([
      .init(filter: "a", wantsRetained: false, keepsRetainFlag: true)
    ])
    #expect(harness.connect())
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("a", "x", retain: true))
    #expect(harness.run { !harness.received.isEmpty })
    #expect(harness.received.map(\.retained) == [true])
  }

  @Test func `a sender that requests a response can be answered`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    harness.client.subscribe([.init(filter: "in", wantsRetained: false)])
    #expect(harness.connect())
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("in", [], responseTopic: "answer/here", correlationData: [9, 0]))
    #expect(other.publish("in", [1]))
    #expect(harness.run { harness.received.count == 2 })
    #expect(harness.received.map(\.responseTopic) == ["answer/here", nil])
    #expect(harness.received.map(\.correlationData) == [[9, 0], nil])
    #expect(harness.received.map(\.payload) == [[], [1]])
  }

  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `a payload larger than the limit disturbs nothing`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let broker = try TestBroker()
    try broker.start()
    var configuration = MQTTConfiguration.local(broker, version: version)
    configuration.maximumPacket = 1000
    let harness = try Harness(configuration)
    harness.client.subscribe([.init(filter: "in/#", wantsRetained: false)])
    #expect(harness.connect())
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("in/large", [UInt8](repeating: 0, count: 5 << 20)))
    #expect(other.publish("in/fits", [UInt8](repeating: 0, count: 1000)))
    #expect(harness.run { !harness.received.isEmpty })
    #expect(harness.received.map(\.topic) == ["in/fits"])
    #expect(harness.client.statistics.oversizedIgnored == (version == .v5 ? 0 : 1))
    #expect(harness.client.statistics.losses == 0)
  }

  @Test func `a handler may publish, subscribe and unsubscribe`() throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port, filters: ["out"])
    let harness = try Harness(.local(broker))
    harness.client.subscribe([.init(filter: "in", wantsRetained: false)])
    harness.onMessage = { [unowned harness] message in
      guard message.topic == "in" else { return }
      harness.client.subscribe([.init(filter: "more", wantsRetained: false)])
      harness.client.unsubscribe(["in"])
      // Last, so that its acknowledgement proves that the broker has accepted the others, too.
      #expect(
        harness.client.publish(topic: "out", payload: message.payload, token: .init(number: 1))
      )
    }
    #expect(harness.connect())
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("in", "1"))
    #expect(harness.run { harness.outcomes.count == 1 })
    #expect(other.publish("in", "2"))
    #expect(other.publish("more", "3"))
    #expect(harness.run { harness.received.count == 2 })
    #expect(harness.received.map(\.text) == ["1", "3"])
    #expect(witness.waitFor(count: 1))
  }

  @Test func `a flood of messages arrives whole and in order`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    harness.client.subscribe([.init(filter: "in", qos: 2, wantsRetained: false)])
    #expect(harness.connect())
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    for number in 0..<500 { #expect(other.publish("in", "\(number)")) }
    #expect(harness.run { harness.received.count == 500 })
    #expect(harness.received.map(\.text) == (0..<500).map(String.init))
  }

  @Test func `an acknowledgement that follows many messages is waited for`() throws {
    let message: [UInt8] = [0x30, 5, 0, 1, 0x62, 0, 0x31]
    let broker = try ScriptedBroker(
      .init { packet in
        guard packet.connection == 1, packet.kind == .publish else { return packet.politeAnswer }
        // They take longer than an acknowledgement may.
        return [.drip(message, count: 2500)] + packet.politeAnswer
      }
    )
    var configuration = MQTTConfiguration.local(port: broker.port)
    configuration.acknowledgementDeadline = .seconds(2)
    let harness = try Harness(configuration)
    #expect(harness.connect())

    harness.set("a", "1")

    #expect(harness.run { harness.isSettled })
    #expect(harness.received.count == 2500)
    #expect(broker.connections.count == 1)
  }

  @Test func `a refused or impossible subscription is named in the log`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    harness.client.subscribe([.init(filter: "a/#/b", wantsRetained: false)])
    #expect(harness.connect())
    #expect(harness.log.count(of: "# must stand alone") == 1)
  }
}
