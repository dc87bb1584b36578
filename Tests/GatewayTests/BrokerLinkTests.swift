// Settle
// SPDX-License-Identifier: Apache-2.0

import MQTT
import Operations
import Synchronization
import Testing

@testable import Gateway

/// Messages that wait for an offline broker.
@Suite struct BrokerLinkTests {
  /// Collects log lines from any thread.
  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  @Test func `dropped messages are logged at once, and their count at the end`() throws {
    let lines = Lines()
    let log = Logger(level: .info) { lines.add($0) }
    let client = try MQTTClient(
      configuration: MQTTConfiguration(
        endpoint: .unix(path: "/nonexistent/broker.sock"),
        clientID: "nobody"
      ),
      loop: EventLoop(),
      log: log
    )
    let link = BrokerLink(name: nil, client: client, log: log)
    let enqueue = { (count: Int) in
      for _ in 0..<count { link.enqueue(.init(topic: "settle/a/b/event", payload: [])) }
    }

    enqueue(4096)
    #expect(link.droppedMessages == 0)
    link.logDroppedMessages()
    #expect(lines.all == [])
    enqueue(1)
    #expect(link.droppedMessages == 1024)
    #expect(lines.all.count == 1)
    #expect(lines.all[0].contains("warning Events and replies dropped"))
    #expect(lines.all[0].hasSuffix("count=1024 total=1024 limit=4096"))
    enqueue(2048)
    #expect(link.droppedMessages == 3072)
    #expect(lines.all.count == 1)
    link.logDroppedMessages()
    #expect(lines.all.count == 2)
    #expect(lines.all[1].hasSuffix("count=2048 total=3072 limit=4096"))
    link.logDroppedMessages()
    #expect(lines.all.count == 2)
  }

  @Test func `large messages that wait are limited by their size`() throws {
    let client = try MQTTClient(
      configuration: MQTTConfiguration(
        endpoint: .unix(path: "/nonexistent/broker.sock"),
        clientID: "nobody"
      ),
      loop: EventLoop(),
      log: .silent
    )
    let link = BrokerLink(name: nil, client: client, log: .silent)
    // 60,000 bytes, with the topic and what a message costs besides.
    let payload = [UInt8](repeating: 0, count: 60_000 - 4 - 128)
    for _ in 0..<279 { link.enqueue(.init(topic: "long", payload: payload)) }
    #expect(link.waitingCount == 279)
    link.enqueue(.init(topic: "long", payload: payload))
    #expect(link.waitingCount == 210)
    #expect(link.droppedMessages == 70)
    for _ in 0..<10_000 { link.enqueue(.init(topic: "long", payload: payload)) }
    #expect((200...279).contains(link.waitingCount))
    // Small ones still count by number.
    for _ in 0..<4096 { link.enqueue(.init(topic: "a", payload: [])) }
    #expect(link.waitingCount > 3072)
  }
}
