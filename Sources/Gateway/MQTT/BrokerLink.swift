// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
import LastOut
package import MQTT
import Operations
import Routing

/// The gateway's connection to one broker, with the messages of its own that wait for room there.
final class BrokerLink {
  /// Where a published message came from, so that its outcome is reported there.
  enum Sender: UInt8 {
    case command = 0
    case route = 1
    /// The gateway's own topics: targets, events, status, requests for state.
    case own = 2

    func token(_ number: UInt64) -> MQTTClient.Token {
      MQTTClient.Token(sender: rawValue, number: number)
    }
  }

  /// One message of the gateway's own.
  struct Message {
    var topic: String
    var payload: [UInt8]
    var qos = 1
    var retain = false
    var correlationData: [UInt8]?
    var userProperties: [String: String] = [:]
    /// Sent again if the connection ends before it is acknowledged.
    var isKept = false

    /// The memory of its parts, roughly, in bytes.
    var size: Int { topic.utf8.count + payload.count + (correlationData?.count ?? 0) + 128 }
  }

  /// `nil`: the gateway's own broker.
  let name: String?
  let client: MQTTClient
  var isConnected = false { didSet { if isConnected != oldValue { since = EventLoop.now() } } }
  /// Since when it has been connected, or not.
  private(set) var since = EventLoop.now()
  /// The payload of what was published behind the messages that the broker retains.
  var marker: [UInt8] = []
  /// Own messages kept while the broker is slow or away; the oldest are dropped when it is full.
  private var messages = Deque<Message>()
  private var queuedBytes = 0
  /// How many are kept.
  private var limit = BrokerLink.messageLimit
  /// Kept messages in flight.
  private var unanswered: [UInt64: Message] = [:]
  private(set) var ownToken: UInt64 = 0
  private(set) var droppedMessages: UInt64 = 0
  private var dropPace = LogPace()
  private let log: Logger
  private static let messageLimit = 4096
  /// How much memory they may use, in bytes.
  private static let byteLimit = 16 << 20

  init(name: String?, client: MQTTClient, log: Logger) {
    self.name = name
    self.client = client
    self.log = log
  }

  /// Whether no own message waits, and everything published is acknowledged.
  var isIdle: Bool { messages.isEmpty && client.unacknowledgedCount == 0 }

  /// Own messages that wait for room.
  var waitingCount: Int { messages.count }

  func enqueue(_ message: Message) {
    if messages.count >= limit || queuedBytes + message.size > Self.byteLimit { dropOldest() }
    queuedBytes += message.size
    messages.append(message)
  }

  /// Drops the oldest quarter, so that it does not happen for every message.
  private func dropOldest() {
    let (count, bytes) = (messages.count, queuedBytes)
    while !messages.isEmpty, messages.count > count * 3 / 4 || queuedBytes > bytes / 4 * 3 {
      removeFirst()
    }
    let dropped = UInt64(count - messages.count)
    droppedMessages += dropped
    if let count = dropPace.record(dropped, at: EventLoop.now()) { logDropped(count) }
  }

  private func removeFirst() {
    if let message = messages.popFirst() { queuedBytes -= message.size }
  }

  /// Logs what was dropped and not logged yet: the broker is back, or the gateway ends.
  func logDroppedMessages() {
    let count = dropPace.end()
    if count > 0 { logDropped(count) }
  }

  /// Makes room for the events of `count` commands that are pending at shutdown.
  ///
  /// A command has up to two events on its topic, and a reply.
  func makeRoom(forCommands count: Int) { limit = Self.messageLimit + 4 * count }

  /// Discards what waits; `others` messages beside it were not published either.
  func discardMessages(others: Int) {
    logDroppedMessages()
    let count = messages.count + others
    guard count > 0 else { return }
    droppedMessages += UInt64(messages.count)
    messages.removeAll()
    queuedBytes = 0
    log.warning("Messages not sent before exit", ["messages": String(count)])
  }

  private func logDropped(_ count: UInt64) {
    log.warning(
      "Events and replies dropped: the broker is away or too slow",
      [
        "count": String(count), "total": String(droppedMessages),
        "limit": String(limit),
      ]
    )
  }

  /// Publishes own messages while there is room.
  func sendMessages() {
    while let message = messages.first, client.canPublish, send(message) { removeFirst() }
  }

  /// Publishes a retained message; `false` if the client accepts none at the moment.
  func publishRetained(_ payload: [UInt8], on topic: String) -> Bool {
    ownToken += 1
    return client.publish(
      topic: topic,
      payload: payload,
      retain: true,
      token: Sender.own.token(ownToken)
    )
  }

  /// Publishes one own message; `false` if the client accepts none at the moment.
  func send(_ message: Message) -> Bool {
    ownToken += 1
    var properties = PublishProperties()
    properties.correlationData = message.correlationData
    properties.userProperties = message.userProperties
    if message.isKept { unanswered[ownToken] = message }
    let isAccepted = client.publish(
      topic: message.topic,
      payload: message.payload,
      qos: message.qos,
      retain: message.retain,
      properties: properties,
      token: Sender.own.token(ownToken)
    )
    if !isAccepted, message.isKept { unanswered[ownToken] = nil }
    return isAccepted
  }

  /// Reports the outcome of an own message; a lost one is sent again if it is kept.
  func finish(_ token: UInt64, isLost: Bool) {
    guard !unanswered.isEmpty, let message = unanswered.removeValue(forKey: token), isLost else {
      return
    }
    enqueue(message)
  }
}

extension MQTTConfiguration {
  /// The options of a broker's section; `fallbackID` is the client id where it names none.
  package init(_ broker: BrokerConfiguration, fallbackID: String, limits: Limits) {
    self.init(endpoint: broker.endpoint, clientID: broker.clientID ?? fallbackID)
    alternatives = broker.alternatives
    version = broker.usesMQTT5 ? .v5 : .v311
    allowsOlderVersion = broker.allowsOlderVersion
    username = broker.username
    password = broker.password
    caFile = broker.ca
    certificateFile = broker.certificate
    keyFile = broker.key
    keepalive = broker.keepalive
    // Room for topic and properties around the largest payload.
    maximumPacket = limits.payload + 128 * 1024
  }
}
