// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
package import LastOut

/// One message for the broker, with the commands of one or several keys.
package struct CommandPublish: Sendable {
  /// What became of a message.
  package enum Outcome: Hashable, Sendable {
    case acknowledged
    /// The broker refused it; sending the same again is pointless.
    case refused(String)
    /// The connection ended first; whether the broker has it is unknown.
    case lost
  }

  /// Names the message in ``CommandStateMachine/finish(_:_:at:)``.
  package let token: UInt64
  package let topic: String
  package let payload: [UInt8]
  package let qos: Int
  /// What is left of the `ttl` in nanoseconds; one second at least.
  package let timeLeft: UInt64
  package let keys: [KeyIndex]
  /// Whether some of it was accepted by an earlier process.
  package let isReplayed: Bool

  /// Composes the message for `commands` of `keys`, which share a topic.
  ///
  /// Several commands, or one with options, are merged into one JSON object. A message for a group has
  /// `parts`: its keys, which say how it is built, and the place of a command with the value of each.
  init(
    _ commands: [Command],
    of keys: [KeyIndex],
    as parts: [(group: KeyIndex, place: Int)]? = nil,
    in registry: Registry,
    token: UInt64,
    message: Int64,
    at now: Moment
  ) {
    var values: [(template: PayloadTemplate, wire: JSONValue)] = []
    var options: [JSONValue.Member] = []
    var qos = 0
    func add(_ command: Command, of key: KeyIndex) {
      let endpoint = registry[key].command
      values.append((endpoint.payload, registry.definition(of: key).wireValue(of: command.value)))
      if endpoint.payload.isObject { options += command.change.members ?? [] }
      qos = max(qos, endpoint.qos)
    }
    var expiresAt = Moment(nanoseconds: .max)
    for (key, command) in zip(keys, commands) {
      expiresAt = min(expiresAt, command.change.expiresAt)
      if parts == nil { add(command, of: key) }
    }
    for part in parts ?? [] { add(commands[part.place], of: part.group) }
    var payload: [UInt8] = []
    PayloadTemplate.render(
      merging: values,
      options: Self.newest(of: options),
      id: message,
      into: &payload
    )
    self.token = token
    topic = registry[parts?.first?.group ?? keys[0]].commandTopic
    self.payload = payload
    self.qos = qos
    timeLeft = Self.timeLeft(from: now, until: expiresAt)
    self.keys = keys
    isReplayed = commands.contains { $0.change.isReplayed }
  }

  /// What is left of the `ttl`.
  package var expiry: Duration { .nanoseconds(Int64(clamping: timeLeft)) }

  /// The same in whole seconds, rounded up, as MQTT has it.
  package var expirySeconds: UInt32 {
    UInt32(clamping: timeLeft / 1_000_000_000 + (timeLeft % 1_000_000_000 > 0 ? 1 : 0))
  }

  private static func timeLeft(from now: Moment, until end: Moment) -> UInt64 {
    let (left, isOver) = end.nanoseconds.subtractingReportingOverflow(now.nanoseconds)
    return isOver ? 1_000_000_000 : max(left, 1_000_000_000)
  }

  /// The last of those that share a name, in the order of the last ones.
  private static func newest(of options: [JSONValue.Member]) -> [JSONValue.Member] {
    var newest: [JSONValue.Member] = []
    for option in options {
      newest.removeAll { $0.name == option.name }
      newest.append(option)
    }
    return newest
  }
}
