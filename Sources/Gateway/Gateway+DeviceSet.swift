// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import MQTT

/// Several properties of a device at once: they share one instant, and are taken or refused
/// together.
extension Gateway {
  private typealias Changes = [(key: KeyIndex, value: Value)]

  /// Takes a message on a device's `set` topic.
  func set(
    device: Int,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) throws(ValidationError) {
    let members = try SetPayload.members(payload)
    try take(members, ofDevice: device, at: now, origin: origin(of: message)) {
      (key, value) throws(ValidationError) in
      try breakEchoLoop(key, value, by: topic, at: now)
    }
  }

  /// Takes several properties of a device in one instant, with the options among them.
  ///
  /// `check` may refuse one of the values, and with it all. What is refused is told as an event of
  /// each property that is named.
  func take(
    _ members: [JSONValue.Member],
    ofDevice device: Int,
    at now: Moment,
    origin: ChangeOrigin?,
    unless check: (KeyIndex, Value) throws(ValidationError) -> Void = { _, _ in }
  ) throws(ValidationError) {
    advanceIfDue(at: now)  // What is due makes room.
    do throws(ValidationError) {
      let (changes, options) = try changes(members, ofDevice: device)
      try machine.checkRoom(for: changes)
      for (key, value) in changes { try check(key, value) }
      for (key, value) in changes {
        try take(
          .set(value),
          of: key,
          at: now,
          origin: origin,
          options: options.isEmpty ? nil : options
        )
      }
    } catch {
      // Whoever sent it gets one answer for all of it: here only the event topics are told.
      for (key, value) in values(namedBy: members, ofDevice: device) {
        refusedValues[machine.reject(key, reason: error.description, at: now)] = value
      }
      throw error
    }
  }

  /// The properties that are named and what they were to be, each once; a name that is none is left
  /// out.
  private func values(
    namedBy members: [JSONValue.Member],
    ofDevice device: Int
  ) -> [(key: KeyIndex, value: JSONValue)] {
    var seen: Set<KeyIndex> = []
    return members.compactMap { member in
      guard let key = try? registry.index(of: member.name, inDevice: device),
        seen.insert(key).inserted
      else { return nil }
      return (key, member.value)
    }
  }

  /// The properties and the options of a device-level set, all of them valid.
  private func changes(
    _ members: [JSONValue.Member],
    ofDevice device: Int
  ) throws(ValidationError) -> (changes: Changes, options: [JSONValue.Member]) {
    let description = registry.devices[device]
    var changes: Changes = []
    var options: [JSONValue.Member] = []
    for member in members {
      if description.options.contains(member.name) {
        options.append(member)
        continue
      }
      let key = try registry.index(of: member.name, inDevice: device)
      do throws(ValidationError) {
        changes.append((key, try registry.value(from: member.value, of: key)))
      } catch {
        throw .unsupported("\(registry[key].property.id): \(error.description)")
      }
    }
    guard !changes.isEmpty else {
      throw .wrongType(
        found: options.isEmpty ? "no properties" : "options alone",
        expected: "at least one property of the device",
        suggestion: nil
      )
    }
    // A JSON object has no order: what an urgent member ends came before this message.
    let isUrgent = { (change: (key: KeyIndex, value: Value)) in
      self.registry.properties[Int(change.key.rawValue)].property.urgent.contains(change.value)
    }
    return (changes.filter(isUrgent) + changes.filter { !isUrgent($0) }, options)
  }
}
