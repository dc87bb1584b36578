// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// Brokers that do not speak MQTT 5, and lists of brokers.
@Suite(.blocking) struct OlderProtocolScenarios {
  /// What a broker of before MQTT 5 does with its CONNECT.
  enum Refusal: String, Sendable, CaseIterable {
    case oldCode, newCode, close, reset

    func actions(_ packet: ScriptedPacket) -> [ScriptedBroker.Action] {
      switch self {
      case .oldCode: [.send([0x20, 2, 0, 1]), .close]
      case .newCode: [.send([0x20, 3, 0, 0x84, 0]), .close]
      case .close: [.close]
      case .reset: [.reset]
      }
    }
  }

  private func peer(_ refusal: Refusal, first count: Int = .max) throws -> ScriptedBroker {
    try ScriptedBroker(
      ScriptedBroker.Script { packet in
        packet.kind == .connect && packet.isVersion5 && packet.connection <= count
          ? refusal.actions(packet) : packet.politeAnswer
      }
    )
  }

  @Test(arguments: Refusal.allCases)
  func `a broker that does not speak MQTT 5 is used with 3_1_1, and the log says so once`(
    refusal: Refusal
  ) throws {
    let peer = try peer(refusal)
    var configuration = MQTTConfiguration.local(port: peer.port)
    configuration.allowsOlderVersion = true
    let harness = try Harness(configuration)
    #expect(harness.connect(), "\(harness.log.all)")
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
    #expect(harness.client.version == .v311)

    harness.client.close()
    #expect(harness.run { harness.client.state == .idle })
    #expect(harness.connect())
    #expect(harness.log.count(of: "does not speak MQTT 5; MQTT 3.1.1 is used") == 1)
  }

  @Test(arguments: Refusal.allCases)
  func `a protocol that is stated is kept`(refusal: Refusal) throws {
    let peer = try peer(refusal)
    let harness = try Harness(.local(port: peer.port))
    harness.client.start()
    #expect(peer.waitFor(connections: 1))
    #expect(harness.run { harness.waitingReason != nil })
    #expect(!peer.packets.contains { $0.kind == .connect && !$0.isVersion5 })
  }

  @Test func `a broker that closes one connection while it is restarted keeps MQTT 5`() throws {
    let peer = try peer(.close, first: 1)
    var configuration = MQTTConfiguration.local(port: peer.port)
    configuration.allowsOlderVersion = true
    let harness = try Harness(configuration)
    #expect(harness.connect())
    #expect(harness.client.version == .v5)
    #expect(peer.packets.allSatisfy { $0.isVersion5 })
  }

  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `brokers are tried in turn, and the next one takes over`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let (first, second) = (try TestBroker(), try TestBroker())
    try second.start()
    var configuration = MQTTConfiguration.local(first, version: version)
    configuration.alternatives = [.tcp(host: "127.0.0.1", port: second.port)]
    let harness = try Harness(configuration)
    #expect(harness.connect())
    #expect(harness.client.endpoint == "mqtt://127.0.0.1:\(second.port)")
    #expect(harness.client.address == "127.0.0.1")

    try first.start()
    second.stop(signal: SIGKILL)
    #expect(harness.run { harness.client.statistics.connections == 2 })
    #expect(harness.client.endpoint == "mqtt://127.0.0.1:\(first.port)")
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })

    first.stop(signal: SIGKILL)
    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.log.count(of: "\(first.port), mqtt://127.0.0.1:\(second.port)") > 0)
  }
}
