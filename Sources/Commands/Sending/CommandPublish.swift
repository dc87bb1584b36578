// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import JSON
package import LastOut
package import Values

/// One message for the broker, with the commands of one or several keys.
package struct CommandPublish: Sendable {
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
  /// Several commands, or one with options, are merged into one JSON object. A message for a group
  /// has `parts`: its keys, which say how it is built, and the place of a command with the value of
  /// each.
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

/// What would be sent, without sending it.
extension CommandPublish {
  /// The messages that `values` would be sent in if they settled now, with pending values that are
  /// merged with them; nothing changes.
  ///
  /// A value that the device has is left out of a message that is sent for another one. The values
  /// of a group's key are those of its members, which `allows` says may have them, or one message
  /// for all.
  package static func previews(
    of values: [(key: KeyIndex, value: Value)],
    options members: [JSONValue.Member]? = nil,
    in machine: borrowing CommandStateMachine,
    allows: (KeyIndex, Value) -> Bool = { _, _ in true },
    at now: Moment
  ) -> [CommandPublish] {
    var publishes: [CommandPublish] = []
    var single: [(key: KeyIndex, value: Value)] = []
    var grouped: Set<KeyIndex> = []
    for (key, value) in values where !grouped.contains(key) {
      guard machine.facts[key].isGroup else {
        single.append((key, value))
        continue
      }
      let merged = machine.relations[key].mergeGroup
      let asked = values.filter { $0.key == key || merged.contains($0.key) }
      let message = GroupMessage(previewing: key, of: asked, in: machine, allows: allows)
      guard let message else {
        single += machine.registry.groups.members(of: key).map { ($0, value) }
        continue
      }
      grouped.formUnion(message.parts.map(\.group))
      let commands = message.keys.map { member in
        let part = message.parts.last { $0.place <= message.keys.firstIndex(of: member) ?? 0 }
        let value = asked.first { $0.key == part?.group }?.value ?? value
        return Command(previewing: value, of: member, options: members, in: machine, at: now)
      }
      publishes.append(
        CommandPublish(
          commands,
          of: message.keys,
          as: message.parts,
          in: machine.registry,
          token: 0,
          message: machine.messageNumber(of: commands),
          at: now
        )
      )
    }
    return publishes + previews(ofSingle: single, options: members, in: machine, at: now)
  }

  private static func previews(
    ofSingle values: [(key: KeyIndex, value: Value)],
    options members: [JSONValue.Member]?,
    in machine: borrowing CommandStateMachine,
    at now: Moment
  ) -> [CommandPublish] {
    var covered: Set<KeyIndex> = []
    var publishes: [CommandPublish] = []
    for (key, _) in values where !covered.contains(key) {
      let companions = machine.sendQueue.companions(of: key)
      let asked = values.filter { companions.contains($0.key) }
      var new: [(key: KeyIndex, value: Value)] = []
      for (key, value) in asked where !machine.isUnchanged(value, of: key) {
        new.append((key, value))
      }
      covered.formUnion(asked.map(\.key))
      var waiting: [KeyIndex: Command] = [:]
      // A value that one of them ends is not sent with it.
      var excluded: [KeyIndex] = []
      for (key, _) in asked { excluded += machine.relations[key].excluded }
      for other in companions where !excluded.contains(other) {
        let pending = machine.queue.pending(other).map { Command(change: $0.value) }
        waiting[other] = pending ?? machine.sendQueue[other]
      }
      for (key, _) in asked { waiting[key] = nil }
      for (key, value) in new.isEmpty ? asked : new {
        waiting[key] = Command(
          previewing: value,
          of: key,
          options: members,
          in: machine,
          at: now
        )
      }
      publishes.append(preview(of: waiting, in: machine, at: now))
    }
    return publishes
  }

  private static func preview(
    of waiting: [KeyIndex: Command],
    in machine: borrowing CommandStateMachine,
    at now: Moment
  ) -> CommandPublish {
    let keys = waiting.keys.sorted { $0.rawValue < $1.rawValue }
    let commands = keys.compactMap { waiting[$0] }
    return CommandPublish(
      commands,
      of: keys,
      in: machine.registry,
      token: 0,
      message: machine.messageNumber(of: commands),
      at: now
    )
  }
}

extension Command {
  /// The command of a value that is accepted at `now`.
  fileprivate init(
    previewing value: Value,
    of key: KeyIndex,
    options members: [JSONValue.Member]?,
    in machine: borrowing CommandStateMachine,
    at now: Moment
  ) {
    self.init(
      change: PendingChange(
        value: value,
        number: machine.log.newestNumber + 1,
        acceptedAt: now,
        expiresAt: machine.facts[key].expiry(from: now),
        members: members
      )
    )
  }
}
