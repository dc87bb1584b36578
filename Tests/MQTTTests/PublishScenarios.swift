// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// Publishing, in spite of faults.
@Suite(.blocking) struct PublishScenarios {
  @Test(arguments: [MQTTConfiguration.ProtocolVersion.v311, .v5])
  func `a stopped broker is noticed by the acknowledgement deadline, and all arrives afterwards`(
    version: MQTTConfiguration.ProtocolVersion
  ) throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    var configuration = MQTTConfiguration.local(broker, version: version)
    configuration.acknowledgementDeadline = .milliseconds(300)
    configuration.connectDeadline = .milliseconds(500)
    let harness = try Harness(configuration)
    #expect(harness.connect())
    broker.pause()
    let start = EventLoop.now()
    for number in 0..<60 { harness.set("key/\(number)", "old") }
    #expect(harness.run { !harness.isConnected })
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(300))
    #expect(harness.waitingReason?.hasPrefix("no acknowledgement within") == true)
    #expect(harness.outcomes.count { $0.outcome == .lost } == 20)
    for number in 0..<60 { harness.set("key/\(number)", "new") }
    broker.resume()
    #expect(harness.run { harness.isSettled })
    #expect(witness.waitFor { Set($0.filter { $0.text == "new" }.map(\.topic)).count == 60 })
    for number in 0..<60 { #expect(witness.texts(on: "key/\(number)").last == "new") }
    #expect(harness.outcomes.allSatisfy { !"\($0.outcome)".contains("refused") })
  }

  @Test func `kills of the broker under load lose no topic's newest value`() throws {
    var options = TestBroker.Options()
    options.lines = ["max_queued_messages 100000"]
    let broker = try TestBroker(options: options)
    try broker.start()
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    for round in 0..<5 {
      for number in 0..<200 { harness.set("key/\(number)", "\(round)") }
      try broker.restart(signal: SIGKILL)
    }
    let witness = try RecordingSubscriber(port: broker.port)
    for number in 0..<200 { harness.set("key/\(number)", "last") }
    #expect(harness.run { harness.isSettled })
    #expect(witness.waitFor { Set($0.filter { $0.text == "last" }.map(\.topic)).count == 200 })
    #expect(harness.highestUnacknowledged <= 20)
    #expect(harness.client.statistics.refused == 0)
  }

  @Test(arguments: [(20, 20), (50, 10), (5, 5)])
  func `neither the window nor the broker's limit is exceeded`(
    window: Int,
    highest: Int
  ) throws {
    var options = TestBroker.Options()
    options.lines = ["max_inflight_messages 10"]
    let broker = try TestBroker(options: window == 50 ? options : .init())
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    configuration.window = window
    // Sent again after a connection that was given up, a message would have two outcomes.
    configuration.acknowledgementDeadline = .seconds(600)
    let harness = try Harness(configuration)
    #expect(harness.connect())
    for number in 0..<500 { harness.set("key/\(number)", "x") }
    #expect(harness.run { harness.isSettled })
    #expect(harness.highestUnacknowledged == highest)
    #expect(harness.outcomes.count == 500)
    #expect(harness.outcomes.allSatisfy { $0.outcome == .acknowledged })
  }

  @Test(arguments: [0, 1, 2])
  func `every quality of service ends in one outcome`(qos: Int) throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    for token in 1...30 as ClosedRange<UInt64> {
      #expect(harness.run { harness.client.canPublish })
      #expect(
        harness.client.publish(topic: "a", payload: [65], qos: qos, token: .init(number: token))
      )
    }
    #expect(harness.run { harness.outcomes.count == 30 })
    #expect(witness.waitFor(count: 30))
    #expect(harness.outcomes.map(\.token.number) == Array(1...30))
    #expect(witness.messages.allSatisfy { $0.qos == qos })
  }

  @Test func `publishes are refused while not connected`() throws {
    let harness = try Harness(.local(port: 1))
    #expect(!harness.client.publish(topic: "a", payload: [], token: .init(number: 1)))
    #expect(harness.outcomes.isEmpty)
  }

  @Test func `properties travel under MQTT 5`() throws {
    let broker = try TestBroker()
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    var properties = PublishProperties()
    properties.expirySeconds = 60
    properties.correlationData = [1, 0, 2]
    properties.userProperties = ["replayed": "1", "reason": "two\nlines\u{7F}"]
    let sent = harness.client.publish(
      topic: "a",
      payload: [],
      retain: true,
      properties: properties,
      token: .init(number: 1)
    )
    #expect(sent)
    #expect(harness.run { harness.outcomes.count == 1 })
    #expect(witness.waitFor(count: 1))
    let message = try #require(witness.messages.first)
    #expect(message.expirySeconds == 60)
    #expect(message.correlationData == [1, 0, 2])
    #expect(message.userProperties == ["replayed": "1", "reason": "two lines "])
  }

  @Test func `a topic that no broker accepts is refused before it is sent`() throws {
    let broker = try TestBroker()
    try broker.start()
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    let deep = String(repeating: "a/", count: 250)
    for (token, topic) in ["", "a/+", "a/#", "$SYS/x", "a\0b", deep].enumerated() {
      #expect(
        harness.client.publish(topic: topic, payload: [], token: .init(number: UInt64(token)))
      )
    }
    #expect(harness.outcomes.count == 6)
    #expect(harness.outcomes.allSatisfy { "\($0.outcome)".hasPrefix("refused") })
    harness.set("fine", "1")
    #expect(harness.run { harness.isSettled })
    #expect(harness.client.statistics.losses == 0)
  }

  @Test func `a message the broker drops the connection for is quarantined, the others arrive`()
    throws
  {
    var options = TestBroker.Options()
    options.lines = ["max_packet_size 2000"]
    let broker = try TestBroker(options: options)
    try broker.start()
    let witness = try RecordingSubscriber(port: broker.port)
    // Under 3.1.1 the client does not know the limit.
    let harness = try Harness(.local(broker, version: .v311))
    #expect(harness.connect())
    // Others are in flight before and behind it at the first loss, so that it is not suspected
    // alone.
    broker.pause()
    for number in 0..<5 { harness.set("key/\(number)", "x") }
    harness.set("poison", String(repeating: "x", count: 5000))
    for number in 5..<50 { harness.set("key/\(number)", "x") }
    broker.resume()
    #expect(harness.run { harness.isSettled })
    #expect(witness.waitFor { Set($0.map(\.topic)).count == 50 })
    #expect(harness.client.statistics.losses == 4)
    let refusals = harness.outcomes.filter { "\($0.outcome)".contains("quarantined") }
    #expect(refusals.count == 1)
    #expect(harness.log.count(of: "Topic quarantined") == 1)
    // It is refused without being sent, and another payload is tried at once.
    harness.set("poison", String(repeating: "x", count: 5000))
    #expect(harness.isSettled)
    #expect(harness.client.statistics.losses == 4)
    #expect(harness.client.quarantinedTopics(at: EventLoop.now()).map(\.topic) == ["poison"])
    harness.set("poison", "small")
    #expect(harness.run { harness.isSettled })
    #expect(witness.waitFor { $0.contains { $0.topic == "poison" && $0.text == "small" } })
    #expect(harness.client.statistics.losses == 4)
    #expect(harness.isConnected)
  }

  @Test func `a message above the broker's limit is refused without a loss`() throws {
    var options = TestBroker.Options()
    options.lines = ["max_packet_size 2000"]
    let broker = try TestBroker(options: options)
    try broker.start()
    let harness = try Harness(.local(broker))
    #expect(harness.connect())
    harness.set("large", String(repeating: "x", count: 5000))
    #expect(harness.outcomes.count == 1)
    #expect("\(harness.outcomes[0].outcome)".hasPrefix("refused"))
    harness.set("small", "x")
    #expect(harness.run { harness.isSettled })
    #expect(harness.client.statistics.losses == 0)
  }

  @Test(arguments: [false, true])
  func `a broker that supports only QoS 0 gets QoS 0, with one warning`(hasWill: Bool) throws {
    var options = TestBroker.Options()
    options.lines = ["max_qos 0"]
    let broker = try TestBroker(options: options)
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    if hasWill { configuration.will = .init(topic: "gone", payload: []) }
    let harness = try Harness(configuration)
    #expect(harness.connect())
    for number in 0..<5 { harness.set("a/\(number)", "1") }
    #expect(harness.run { harness.isSettled })
    #expect(Set(harness.outcomes.map(\.outcome)) == [.acknowledged])
    #expect(harness.log.count(of: "does not support this quality of service") == 1)
  }

  @Test func `a broker that supports QoS 1 at most gets QoS 1, with one warning`() throws {
    var options = TestBroker.Options()
    options.lines = ["max_qos 1"]
    let broker = try TestBroker(options: options)
    try broker.start()
    var configuration = MQTTConfiguration.local(broker)
    configuration.will = .init(topic: "gone", payload: [], qos: 2)
    let harness = try Harness(configuration)
    #expect(harness.connect())
    for number in 0..<5 {
      let token = MQTTClient.Token(number: UInt64(100 + number))
      #expect(harness.client.publish(topic: "a", payload: [], qos: 2, token: token))
    }
    #expect(harness.run { harness.outcomes.count == 5 })
    #expect(harness.outcomes.allSatisfy { $0.outcome == .acknowledged })
    #expect(harness.log.count(of: "does not support this quality of service") == 1)
    #expect(harness.log.count(of: "wanted=2 used=1") == 1)
  }

  @Test func `a refusal by the broker has its reason`() throws {
    let broker = try TestBroker()
    let rules = broker.directory + "/acl"
    try TextFile.write("topic read #\n", to: rules)
    var options = TestBroker.Options()
    options.lines = ["acl_file \(rules)"]
    let strict = try TestBroker(options: options)
    try strict.start()
    let harness = try Harness(.local(strict))
    #expect(harness.connect())
    #expect(harness.client.publish(topic: "a", payload: [], token: .init(number: 7)))
    #expect(harness.run { harness.outcomes.count == 1 })
    #expect(harness.outcomes[0].outcome == .refused("not authorized (0x87)"))
  }

  @Test func `two hundred reconnects leak neither descriptors nor memory`() async {
    // In a separate process, whose descriptors and memory no other test uses.
    await #expect(processExitsWith: .success) {
      let broker = try TestBroker()
      try broker.start()
      let harness = try Harness(.local(broker))
      func reconnect(_ times: Int) {
        for _ in 0..<times {
          #expect(harness.connect())
          harness.set("a", "x")
          #expect(harness.run { harness.isSettled })
          harness.client.close()
          #expect(harness.run { harness.client.state == .idle })
        }
      }
      // The runtime's own threads open descriptors and touch memory at any time, so a leak is told
      // by its size: each of the reconnects would add to both.
      reconnect(50)
      let descriptors = ownDescriptors()
      let growth = (0..<4).map { _ in
        let before = residentKilobytes()
        reconnect(50)
        return residentKilobytes() - before
      }
      let after = ownDescriptors()
      #expect(after < descriptors + 50, "\(descriptors) descriptors before, \(after) after")
      // The address sanitizer keeps what was freed; its own leak detector judges at the end.
      if Environment["SETTLE_KEEPS_FREED_MEMORY"] == nil {
        #expect(growth.contains { $0 < 500 }, "kilobytes in each fifty reconnects: \(growth)")
      }
    }
  }
}

/// How many descriptors this process has open.
private func ownDescriptors() -> Int {
  guard let directory = unsafe opendir("/proc/self/fd") else { return -1 }
  defer { unsafe closedir(directory) }
  var count = 0
  while unsafe readdir(directory) != nil { count += 1 }
  return count
}

private func residentKilobytes() -> Int {
  let fields = TextFile.read("/proc/self/statm")?.split(separator: " ") ?? []
  return fields.count > 1 ? (Int(fields[1]) ?? 0) * 4 : 0
}
