// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import Operations
import TestBroker
import Testing

@testable import MQTT

/// Many packets that are received or sent at once.
@Suite(.blocking) struct BatchScenarios {
  /// PUBLISH of 3.1.1 at QoS 0 on topic "in", with numbers as payload.
  private static func publishes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for number in 0..<count {
      bytes += [0x30, 6, 0, 2, 0x69, 0x6E, UInt8(number >> 8), UInt8(number & 255)]
    }
    return bytes
  }

  private static func numbers(_ harness: Harness) -> [Int] {
    harness.received.map { Int($0.payload[0]) << 8 | Int($0.payload[1]) }
  }

  /// A broker that sends `actions` to a subscriber on its first connection.
  private func broker(sending actions: [ScriptedBroker.Action]) throws -> ScriptedBroker {
    try ScriptedBroker(
      .init { packet in
        packet.politeAnswer + (packet.kind == .subscribe && packet.connection == 1 ? actions : [])
      }
    )
  }

  private func harness(_ port: Int) throws -> Harness {
    let harness = try Harness(.local(port: port, version: .v311))
    harness.client.subscribe([.init(filter: "in", wantsRetained: true)])
    return harness
  }

  @Test
  func `messages that arrive at once are all delivered, although the kernel reports them once`()
    throws
  {
    let broker = try broker(sending: [.send(Self.publishes(2000))])
    let harness = try harness(broker.port)
    #expect(harness.connect())
    #expect(harness.run { harness.received.count == 2000 })
    #expect(Self.numbers(harness) == Array(0..<2000))
  }

  @Test(arguments: [ScriptedBroker.Action.close, .send([0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 1])])
  func `messages before the end of a connection are delivered first`(
    ending: ScriptedBroker.Action
  ) throws {
    let broker = try broker(sending: [.send(Self.publishes(1500)), ending])
    let harness = try harness(broker.port)
    #expect(harness.connect())
    #expect(harness.run { !harness.isConnected })
    #expect(Self.numbers(harness) == Array(0..<1500))
  }

  @Test func `a long queue of messages does not block other events`() throws {
    let broker = try broker(sending: [.send(Self.publishes(2000))])
    let harness = try harness(broker.port)
    let timer = try harness.loop.makeTimer { [unowned harness] in
      harness.states.append(.waiting(until: .zero, reason: "\(harness.received.count)"))
    }
    harness.onMessage = { [unowned harness] _ in
      if harness.received.count == 1 { timer.arm(at: .zero) }
    }
    #expect(harness.connect())
    #expect(harness.run { harness.received.count == 2000 })
    let heard = harness.waitingReason ?? harness.lastReason
    #expect(heard.flatMap { Int($0) } ?? 2000 < 2000)
  }

  @Test func `a flush sends the publishes of a batch, without another event`() throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    for number in 0..<10 { harness.set("key/\(number)", "x") }
    #expect(harness.client.connection?.handle.wantsToWrite == true)
    harness.client.flush()
    #expect(harness.client.connection?.handle.wantsToWrite == false)
    #expect(witness.waitFor(count: 10))
  }

  /// Publishes a kilobyte at QoS 0 until the client accepts no more; returns how often.
  private func fill(_ client: MQTTClient) -> UInt64 {
    var count: UInt64 = 0
    let payload = [UInt8](repeating: 0x78, count: 1000)
    while client.canPublish, count < 1_000_000 {
      count += 1
      #expect(client.publish(topic: "a", payload: payload, qos: 0, token: .init(number: count)))
    }
    client.flush()
    return count
  }

  @Test func `a publish at QoS 0 has its outcome when the kernel has its last byte`() throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port, filters: ["last"])
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    broker.pause()
    let count = fill(harness.client)
    #expect(harness.client.unacknowledgedCount > 0)
    #expect(UInt64(harness.outcomes.count + harness.client.unacknowledgedCount) == count)
    broker.resume()
    #expect(harness.run { UInt64(harness.outcomes.count) == count })
    #expect(harness.outcomes.map(\.token.number) == Array(1...count))
    #expect(harness.outcomes.allSatisfy { $0.outcome == .acknowledged })
    harness.set("last", "x")
    #expect(harness.run { harness.isSettled })
    #expect(witness.waitFor(count: 1))
  }

  @Test func `a QoS 0 publish that was never written is lost, not acknowledged`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    broker.pause()
    let count = fill(harness.client)
    let waiting = harness.client.unacknowledgedCount
    #expect(waiting > 0)
    try broker.restart(signal: SIGKILL)
    #expect(harness.run { UInt64(harness.outcomes.count) == count })
    #expect(harness.outcomes.count { $0.outcome == .lost } == waiting)
    #expect(harness.outcomes.suffix(waiting).allSatisfy { $0.outcome == .lost })
  }

  @Test func `everything is sent before the DISCONNECT, and no last will is published`() throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    var configuration = MQTTConfiguration.local(broker)
    configuration.will = .init(topic: "will", payload: [1])
    let harness = try Harness(configuration)
    #expect(harness.connect())
    for number in 0..<10 as Range<UInt64> {
      #expect(
        harness.client.publish(topic: "a", payload: [65], qos: 0, token: .init(number: number))
      )
    }
    harness.client.close()
    #expect(harness.client.state == .idle)
    #expect(harness.outcomes.allSatisfy { $0.outcome == .acknowledged })
    #expect(harness.outcomes.count == 10)
    #expect(witness.waitFor(count: 10))
    let other = try Harness(.local(broker, clientID: "other"))
    #expect(other.connect())
    other.set("end", "x")
    #expect(other.run { other.isSettled })
    #expect(witness.waitFor { $0.last?.topic == "end" })
    #expect(!witness.messages.contains { $0.topic == "will" })
  }

  @Test func `two clients on one loop keep their packets apart, one inside the other's handler`()
    throws
  {
    let brokers = [try TestBroker(), try TestBroker()]
    for broker in brokers { try broker.start() }
    let witness = try RecordingSubscriber(port: brokers[1].port)
    let harness = try Harness(.local(brokers[0]))
    let other = try MQTTClient(
      configuration: .local(brokers[1]),
      loop: harness.loop,
      log: Logger(level: .error) { _ in }
    )
    harness.client.subscribe([.init(filter: "in", wantsRetained: false)])
    harness.onMessage = { message in
      #expect(
        other.publish(topic: "out", payload: message.payload, qos: 0, token: .init(number: 1))
      )
      other.flush()
    }
    let loop = harness.loop
    other.onState = { if case .connected = $0 { loop.stop() } }
    other.start()
    #expect(harness.run { other.canPublish })
    #expect(harness.connect())
    let sender = try RecordingSubscriber(port: brokers[0].port, filters: [])
    for number in 0..<50 { #expect(sender.publish("in", "\(number)")) }
    #expect(harness.run { harness.received.count == 50 })
    #expect(witness.waitFor(count: 50))
    #expect(witness.messages.map(\.text) == (0..<50).map(String.init))
    #expect(harness.client.statistics.losses == 0 && other.statistics.losses == 0)
  }

  @Test func `a publish at QoS 0 has its outcome under TLS`() throws {
    let authority = try TestAuthority()
    var options = TestBroker.Options()
    options.certificate = try authority.certificate(name: "localhost")
    let broker = try TestBroker(options: options)
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    configuration.endpoint = .tls(host: "localhost", port: broker.port)
    configuration.caFile = authority.file
    let harness = try Harness(configuration)
    #expect(harness.connect())
    for number in 0..<50 as Range<UInt64> {
      #expect(harness.run { harness.client.canPublish })
      #expect(
        harness.client.publish(topic: "a", payload: [65], qos: 0, token: .init(number: number))
      )
    }
    #expect(harness.run { harness.outcomes.count == 50 })
  }
}
