// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import JSON
package import LastOut
package import Values

/// What would be sent, without sending it.
extension CommandPublish {
  /// The messages that `values` would be sent in if they settled now, with pending values that are
  /// merged with them; nothing changes.
  ///
  /// A value that the device has is left out of a message that is sent for another one. The values of
  /// a group's key are those of its members, which `allows` says may have them, or one message for all.
  package static func previews(
    of values: [(key: KeyIndex, value: Value)],
    options members: [JSONValue.Member]? = nil,
    in dispatcher: borrowing CommandDispatcher,
    allows: (KeyIndex, Value) -> Bool = { _, _ in true },
    at now: Moment
  ) -> [CommandPublish] {
    var publishes: [CommandPublish] = []
    var single: [(key: KeyIndex, value: Value)] = []
    var grouped: Set<KeyIndex> = []
    for (key, value) in values where !grouped.contains(key) {
      guard dispatcher.facts[key].isGroup else {
        single.append((key, value))
        continue
      }
      let merged = dispatcher.relations[key].mergeGroup
      let asked = values.filter { $0.key == key || merged.contains($0.key) }
      let message = GroupMessage(previewing: key, of: asked, in: dispatcher, allows: allows)
      guard let message else {
        single += dispatcher.registry.groups.members(of: key).map { ($0, value) }
        continue
      }
      grouped.formUnion(message.parts.map(\.group))
      let commands = message.keys.map { member in
        let part = message.parts.last { $0.place <= message.keys.firstIndex(of: member) ?? 0 }
        let value = asked.first { $0.key == part?.group }?.value ?? value
        return Command(previewing: value, of: member, options: members, in: dispatcher, at: now)
      }
      publishes.append(
        CommandPublish(
          commands,
          of: message.keys,
          as: message.parts,
          in: dispatcher.registry,
          token: 0,
          message: dispatcher.messageNumber(of: commands),
          at: now
        )
      )
    }
    return publishes + previews(ofSingle: single, options: members, in: dispatcher, at: now)
  }

  private static func previews(
    ofSingle values: [(key: KeyIndex, value: Value)],
    options members: [JSONValue.Member]?,
    in dispatcher: borrowing CommandDispatcher,
    at now: Moment
  ) -> [CommandPublish] {
    var covered: Set<KeyIndex> = []
    var publishes: [CommandPublish] = []
    for (key, _) in values where !covered.contains(key) {
      let companions = dispatcher.sendQueue.companions(of: key)
      let asked = values.filter { companions.contains($0.key) }
      var new: [(key: KeyIndex, value: Value)] = []
      for (key, value) in asked where !dispatcher.isUnchanged(value, of: key) {
        new.append((key, value))
      }
      covered.formUnion(asked.map(\.key))
      var waiting: [KeyIndex: Command] = [:]
      // A value that one of them ends is not sent with it.
      var excluded: [KeyIndex] = []
      for (key, _) in asked { excluded += dispatcher.relations[key].excluded }
      for other in companions where !excluded.contains(other) {
        let pending = dispatcher.queue.pending(other).map { Command(change: $0.value) }
        waiting[other] = pending ?? dispatcher.sendQueue[other]
      }
      for (key, _) in asked { waiting[key] = nil }
      for (key, value) in new.isEmpty ? asked : new {
        waiting[key] = Command(
          previewing: value,
          of: key,
          options: members,
          in: dispatcher,
          at: now
        )
      }
      publishes.append(preview(of: waiting, in: dispatcher, at: now))
    }
    return publishes
  }

  private static func preview(
    of waiting: [KeyIndex: Command],
    in dispatcher: borrowing CommandDispatcher,
    at now: Moment
  ) -> CommandPublish {
    let keys = waiting.keys.sorted { $0.rawValue < $1.rawValue }
    let commands = keys.compactMap { waiting[$0] }
    return CommandPublish(
      commands,
      of: keys,
      in: dispatcher.registry,
      token: 0,
      message: dispatcher.messageNumber(of: commands),
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
    in dispatcher: borrowing CommandDispatcher,
    at now: Moment
  ) {
    self.init(
      change: PendingChange(
        value: value,
        number: dispatcher.log.newestNumber + 1,
        acceptedAt: now,
        expiresAt: dispatcher.facts[key].expiry(from: now),
        members: members
      )
    )
  }
}
