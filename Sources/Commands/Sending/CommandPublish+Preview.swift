// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// What would be sent, without sending it.
extension CommandPublish {
  /// The messages that `values` would be sent in if they settled now, with pending values that are
  /// merged with them; nothing changes.
  ///
  /// A value that the device has is left out of a message that is sent for another one.
  package static func previews(
    of values: [(key: KeyIndex, value: Value)],
    options members: [JSONValue.Member]? = nil,
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
        var change = PendingChange(
          value: value,
          number: dispatcher.log.newestNumber + 1,
          acceptedAt: now,
          expiresAt: dispatcher.facts[key].expiry(from: now)
        )
        change.members = members
        waiting[key] = Command(change: change)
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
