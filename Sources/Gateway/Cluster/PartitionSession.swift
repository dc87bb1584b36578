// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import LastOut
import MQTT
import Routing

/// The session at the broker that carries the messages of a partition's devices, while this member
/// drives them.
final class PartitionSession {
  let partition: Partition
  let link: BrokerLink
  /// The commands that were handed to the connection and have no outcome, by token.
  private var outstanding: Set<UInt64> = []
  /// Commands that wait for room.
  private var waiting = Deque<CommandPublish>()
  /// Called when so many more commands wait, or fewer.
  private let onWaiting: (Int) -> Void
  /// Whether the broker has accepted the connection.
  var isConnected = false

  init(_ partition: Partition, link: BrokerLink, onWaiting: @escaping (Int) -> Void) {
    self.partition = partition
    self.link = link
    self.onWaiting = onWaiting
  }

  /// Whether no command waits or is in flight.
  var isIdle: Bool { waiting.isEmpty && outstanding.isEmpty }

  /// Publishes a command when there is room; `false` without a connection.
  func publish(_ publish: CommandPublish) -> Bool {
    guard isConnected else { return false }
    if waiting.isEmpty, send(publish) { return true }
    waiting.append(publish)
    onWaiting(1)
    return true
  }

  /// Publishes commands that wait, while there is room, and then what the gateway says itself.
  func publishWaiting() {
    while let next = waiting.first, send(next) {
      waiting.removeFirst(1)
      onWaiting(-1)
    }
    link.sendMessages()
  }

  private func send(_ publish: CommandPublish) -> Bool {
    guard link.client.canPublish else { return false }
    outstanding.insert(publish.token)
    let isAccepted = link.client.publish(
      topic: publish.topic,
      payload: publish.payload,
      qos: publish.qos,
      retain: false,
      properties: publish.properties,
      token: BrokerLink.Sender.command.token(publish.token)
    )
    if !isAccepted { outstanding.remove(publish.token) }
    return isAccepted
  }

  /// A command has its outcome; `false` if it had one before.
  func finish(_ token: UInt64) -> Bool { outstanding.remove(token) != nil }

  /// Removes and returns all commands without an outcome: they are lost.
  func removeOutstanding() -> [UInt64] {
    defer { outstanding = [] }
    onWaiting(-waiting.count)
    var tokens = outstanding.sorted()
    while let next = waiting.popFirst() { tokens.append(next.token) }
    return tokens
  }
}

extension CommandPublish {
  /// What goes with the message under MQTT 5.
  var properties: PublishProperties {
    var properties = PublishProperties()
    properties.expirySeconds = expirySeconds
    if isReplayed { properties.userProperties["replayed"] = "1" }
    return properties
  }
}
