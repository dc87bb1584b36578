// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// A broker that does not keep to the protocol.
@Suite(.blocking) struct HostileBrokerScenarios {
  /// The broker's bytes in place of SUBACK.
  struct Insult: CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
    /// Whether 3.1.1 has no such thing.
    var isOnlyOf5 = false
  }

  /// PUBLISH at QoS 0 with a topic and the rest.
  private static func publish(_ topic: [UInt8], _ rest: [UInt8], flags: UInt8 = 0) -> [UInt8] {
    let body = [0, UInt8(topic.count)] + topic + rest
    return [0x30 | flags, UInt8(body.count)] + body
  }

  static let insults: [Insult] = [
    .init(testDescription: "256 MB announced", bytes: [0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 0x61]),
    .init(testDescription: "length of five bytes", bytes: [0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]),
    .init(testDescription: "SUBACK without codes, 3.1.1", bytes: [0x90, 2, 0, 1]),
    .init(testDescription: "SUBACK without codes", bytes: [0x90, 3, 0, 1, 0], isOnlyOf5: true),
    .init(testDescription: "SUBACK with too many", bytes: [0x90, 6, 0, 1, 0, 1, 1, 1]),
    .init(testDescription: "SUBACK of nothing", bytes: [0x90, 0]),
    .init(testDescription: "bad UTF-8 in a topic", bytes: publish([0x61, 0xFF, 0xFE], [0, 0x78])),
    .init(testDescription: "a surrogate in a topic", bytes: publish([0xED, 0xA0, 0x80], [0])),
    .init(testDescription: "NUL in a topic", bytes: publish([0x61, 0, 0x62], [0, 0x78])),
    .init(testDescription: "a wildcard topic", bytes: publish(Array("in/#".utf8), [0, 0x78])),
    .init(testDescription: "no topic", bytes: publish([], [0, 0x78])),
    .init(testDescription: "topic longer than packet", bytes: [0x30, 4, 0xFF, 0xFF, 0x61, 0x61]),
    .init(testDescription: "QoS 3", bytes: publish(Array("in/a".utf8), [0, 1, 0], flags: 6)),
    .init(testDescription: "PUBLISH of nothing", bytes: [0x30, 0]),
    .init(
      testDescription: "properties longer than packet",
      bytes: publish(Array("in/a".utf8), [0x7F, 0x26, 0, 1]),
      isOnlyOf5: true
    ),
    .init(testDescription: "a second CONNACK", bytes: [0x20, 2, 0, 0]),
    .init(testDescription: "CONNACK of nothing", bytes: [0x20, 0]),
    .init(testDescription: "PUBACK for nothing", bytes: [0x40, 2, 0xFF, 0xFF]),
    .init(testDescription: "PUBACK with identifier 0", bytes: [0x40, 2, 0, 0]),
    .init(testDescription: "PUBREL for nothing", bytes: [0x62, 2, 0x12, 0x34]),
    .init(testDescription: "UNSUBACK for nothing", bytes: [0xB0, 2, 0x12, 0x34]),
    .init(testDescription: "PINGRESP with a body", bytes: [0xD0, 2, 1, 2]),
    .init(testDescription: "a packet of clients", bytes: [0x82, 5, 0, 1, 0, 1, 0x61]),
    .init(testDescription: "packet type 0", bytes: [0, 0]),
    .init(testDescription: "AUTH unasked", bytes: [0xF0, 2, 0x18, 0]),
    .init(testDescription: "DISCONNECT of nothing", bytes: [0xE0, 0]),
    .init(testDescription: "another protocol", bytes: Array("HTTP/1.1 400 Bad Request\r\n".utf8)),
  ]

  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5], insults)
  func `the client survives any bytes of a broker and finds a better one`(
    version: MQTTConfiguration.ProtocolVersion,
    insult: Insult
  ) throws {
    if insult.isOnlyOf5, version == .v311 { return }
    let bytes = insult.bytes
    let broker = try ScriptedBroker(
      .init { packet in
        guard packet.connection == 1 else { return packet.politeAnswer }
        switch packet.kind {
        case .connect: return packet.politeAnswer
        case .subscribe: return [.send(bytes)]
        case .publish, .ping, nil: return []
        }
      }
    )
    var configuration = MQTTConfiguration.local(port: broker.port, version: version)
    configuration.acknowledgementDeadline = .milliseconds(100)
    let harness = try Harness(configuration)
    harness.client.subscribe([.init(filter: "in/#", wantsRetained: false)])
    #expect(harness.connect())

    harness.set("a", "1")

    #expect(harness.run { harness.isSettled })
    #expect(broker.connections.count == 2)
    #expect(harness.received.isEmpty)
  }

  /// The bytes in place of CONNACK.
  @Test(
    arguments: [
      [], [0x20], [0x20, 0], [0x20, 2, 0, 0x55], [0x30, 3, 0, 1, 0x61], [0xD0, 0],
      [0x20, 0xFF, 0xFF, 0xFF, 0x7F], [0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
      Array("SSH-2.0-OpenSSH_9.2\r\n".utf8),
    ] as [[UInt8]]
  )
  func `a peer that speaks something else is given up and tried again`(bytes: [UInt8]) throws {
    let broker = try ScriptedBroker(
      .init { $0.connection == 1 ? [.send(bytes)] : $0.politeAnswer }
    )
    var configuration = MQTTConfiguration.local(port: broker.port)
    configuration.connectDeadline = .milliseconds(200)
    let harness = try Harness(configuration)
    harness.client.start()

    #expect(harness.run { harness.waitingReason != nil })
    // A code that MQTT does not know may be a refusal for good.
    guard bytes.count != 4 else { return }
    #expect(harness.run { harness.isConnected })
    #expect(broker.connections.count >= 2)
  }
}
