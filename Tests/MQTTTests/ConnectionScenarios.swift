// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker
import Testing

@testable import MQTT

/// Against a real broker, under both protocol versions where they differ.
@Suite(.blocking) struct ConnectionScenarios {
  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `connects when the broker appears later, and logs why it could not before`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let broker = try TestBroker()
    let harness = try Harness(.local(broker, version: version))
    harness.client.start()
    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason == "Connection refused")
    #expect(harness.run { harness.client.statistics.attempts >= 3 })
    try broker.start()
    #expect(harness.run { harness.isConnected })
    // A second reason would be logged too.
    let refusals = harness.log.all.filter {
      $0.contains("No connection to the broker") && $0.contains(#"reason="Connection refused""#)
    }
    #expect(refusals.count == 1, "\(harness.log.all)")
    let line = try #require(harness.log.all.first)
    #expect(line.contains(#"reason="Connection refused" trying_again_in="0."#), "\(line)")
    // The attempts after the first are logged at intervals from ten seconds up.
    #expect(harness.log.count(of: "Still no connection") == 0)
    #expect(harness.log.count(of: "Connected to the broker") == 1)
  }

  @Test func `a lasting outage is logged again, with the time of the next attempt`() throws {
    let broker = try TestBroker()
    let harness = try Harness(.local(broker))
    harness.client.reconnection.pace = LogPace(.milliseconds(300)...(.seconds(600)))
    harness.client.start()
    #expect(harness.run { harness.log.count(of: "Still no connection") == 1 })
    #expect(harness.run { harness.client.statistics.attempts >= 8 })
    let lines = harness.log.all.filter { $0.contains("Still no connection") }
    #expect(lines.count <= 4)
    #expect(lines[0].contains("info "))
    #expect(lines[0].contains(#"reason="Connection refused" attempts="#), "\(lines)")
    #expect(lines[0].contains(#"trying_again_in="0."#), "\(lines)")
  }

  @Test(arguments: [(3_249, "3.2"), (3_250, "3.3"), (40, "0.0"), (59_960, "60.0")])
  func `a wait is logged in tenths of a second`(milliseconds: Int, text: String) {
    #expect(Reconnection.tenths(.milliseconds(milliseconds)) == text)
  }

  @Test func `a name that does not resolve is tried again, and named in words`() throws {
    var configuration = MQTTConfiguration.local(port: 1883)
    configuration.endpoint = .tcp(host: "broker.invalid", port: 1883)
    let harness = try Harness(configuration)
    harness.client.start()
    #expect(harness.run { harness.client.statistics.attempts >= 2 })
    let line = try #require(harness.log.all.first)
    #expect(line.contains("broker=mqtt://broker.invalid:1883"))
    #expect(line.contains("Name or service not known") || line.contains("name resolution"))
  }

  @Test func `speaks over a unix socket`() throws {
    var options = TestBroker.Options()
    options.hasSocket = true
    let broker = try TestBroker(options: options)
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    configuration.endpoint = .unix(path: broker.socketPath)
    let harness = try Harness(configuration)
    #expect(harness.connect())
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
  }

  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `a wrong password is reported in words and tried again only slowly`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    var options = TestBroker.Options()
    options.users = ["settle": "right"]
    let broker = try TestBroker(options: options)
    try broker.start()
    var configuration = MQTTConfiguration.local(broker, version: version)
    configuration.username = "settle"
    configuration.password = "wrong"
    let harness = try Harness(configuration)
    let start = EventLoop.now()
    harness.client.start()
    #expect(harness.run { harness.waitingReason != nil })
    guard case .waiting(let until, let reason) = harness.client.state else { return }
    #expect(reason.hasPrefix("the broker refused the connection: "))
    #expect(reason.contains("not authorized") || reason.contains("bad user name"))
    #expect(start.duration(to: until) > .seconds(29))
    #expect(!harness.log.all.joined().contains("wrong"))

    configuration.password = "right"
    #expect(try Harness(configuration).connect())
  }

  @Test(arguments: [
    (MQTTConfiguration.ProtocolVersion.v311, SIGTERM), (.v311, SIGKILL), (.v5, SIGTERM),
    (.v5, SIGKILL),
  ])
  func `reconnects after the broker's restart, with its subscriptions`(
    version: MQTTConfiguration.ProtocolVersion,
    signal: Int32
  ) throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker, version: version))
    harness.client.subscribe([.init(filter: "in/#", wantsRetained: true)])
    #expect(harness.connect())
    for _ in 0..<2 {
      try broker.restart(signal: signal)
      #expect(harness.run { harness.waitingReason != nil })
      #expect(harness.run { harness.isConnected })
    }
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("in/a", "x"))
    #expect(harness.run { !harness.received.isEmpty })
    #expect(harness.received.map(\.text) == ["x"])
    #expect(harness.client.statistics.connections == 3)
  }

  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `two clients with one id do not throw each other out for ever`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let broker = try TestBroker()
    try broker.start()
    let first = try Harness(.local(broker, version: version))
    #expect(first.connect())
    for _ in 0..<3 {
      let start = EventLoop.now()
      let rival = try Harness(.local(broker, version: version))
      #expect(rival.connect())
      #expect(first.run { !first.isConnected })
      guard case .waiting(let until, _) = first.client.state else { break }
      if start.duration(to: until) > .seconds(20) { break }
      #expect(first.run { first.isConnected })
    }
    #expect(first.waitingReason?.contains("another client") == true)
  }

  @Test func `closing sends no last will, dying does`() throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    var configuration = MQTTConfiguration.local(broker)
    configuration.will = .init(topic: "status", payload: Array("offline".utf8))

    let polite = try Harness(configuration)
    #expect(polite.connect())
    polite.client.close()
    #expect(polite.run { polite.client.state == .idle })
    #expect(witness.publish("marker", "after close"))

    do {
      let rude = try Harness(configuration)
      #expect(rude.connect())
    }
    #expect(witness.waitFor { $0.contains { $0.topic == "status" } })
    #expect(witness.messages.map(\.topic) == ["marker", "status"])
    #expect(witness.messages.last?.text == "offline")
  }

  @Test func `closing inside a handler happens right after it, from any phase`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    harness.client.subscribe([.init(filter: "in", wantsRetained: false)])
    #expect(harness.connect())
    harness.onMessage = { [unowned harness] _ in
      harness.client.close()
      #expect(harness.isConnected)
      #expect(!harness.client.canPublish)
    }
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("in", "x"))
    #expect(harness.run { harness.client.state == .idle })
    // And again, from the beginning; then while it connects.
    harness.onMessage = nil
    #expect(harness.connect())
    harness.client.close()
    #expect(harness.run { harness.client.state == .idle })
    harness.client.start()
    harness.client.close()
    #expect(harness.client.state == .idle)
  }

  @Test func `a session outlives a disconnect under MQTT 5`() throws {
    let broker = try TestBroker()
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    configuration.sessionExpiry = .seconds(30)
    do {
      let first = try Harness(configuration)
      first.client.subscribe([.init(filter: "in", wantsRetained: false)])
      #expect(first.connect())
      #expect(first.client.state == .connected(sessionPresent: false))
    }
    let other = try RecordingSubscriber(port: broker.port, filters: [])
    #expect(other.publish("in", "kept"))
    let second = try Harness(configuration)
    second.client.subscribe([.init(filter: "in", wantsRetained: false)])
    #expect(second.connect())
    #expect(second.client.state == .connected(sessionPresent: true))
    #expect(second.run { !second.received.isEmpty })
    #expect(second.received.map(\.text) == ["kept"])
  }
}
