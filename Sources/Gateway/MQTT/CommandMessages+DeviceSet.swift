// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import Routing

/// Messages on `settle/<device>/set`: several properties of a device change at one instant, and are
/// accepted or rejected together.
extension CommandMessages {
  private typealias Changes = [(key: KeyIndex, value: Value)]

  func set(
    device: Int,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let members = try SetPayload.members(payload)
    do throws(ValidationError) {
      let (changes, options) = try changes(members, ofDevice: device)
      try context.core.change(
        changes,
        receivedOn: Text.of(topic),
        at: now,
        ChangeOptions(origin: origin, members: options.isEmpty ? nil : options)
      )
      context.counters[device].changes += UInt64(changes.count)
    } catch {
      // The sender gets one reply for the whole message; each property gets an event.
      for (key, value) in values(namedBy: members, ofDevice: device) {
        let number = context.core.reject(key, reason: error.description, at: now, origin: nil)
        context.encoder.keepRejectedValue(value, ofEvent: number)
      }
      throw error
    }
  }

  /// Whether a message names a property of the device, which has the event of its rejection.
  func namesProperty(_ payload: Span<UInt8>, ofDevice device: Int) -> Bool {
    guard let members = try? SetPayload.members(payload) else { return false }
    return !values(namedBy: members, ofDevice: device).isEmpty
  }

  /// The named properties with their values, each once, without unknown names.
  private func values(
    namedBy members: [JSONValue.Member],
    ofDevice device: Int
  ) -> [(key: KeyIndex, value: JSONValue)] {
    var seen: Set<KeyIndex> = []
    return members.compactMap { member in
      guard let key = try? context.registry.index(of: member.name, inDevice: device),
        seen.insert(key).inserted
      else { return nil }
      return (key, member.value)
    }
  }

  /// The properties and the options of the message, all of them valid.
  private func changes(
    _ members: [JSONValue.Member],
    ofDevice device: Int
  ) throws(ValidationError) -> (changes: Changes, options: [JSONValue.Member]) {
    let description = context.registry.devices[device]
    var changes: Changes = []
    var options: [JSONValue.Member] = []
    for member in members {
      if description.options.contains(member.name) {
        options.append(member)
        continue
      }
      let key = try context.registry.index(of: member.name, inDevice: device)
      do throws(ValidationError) {
        changes.append((key, try context.registry.value(from: member.value, of: key)))
      } catch {
        throw .unsupported("\(context.registry[key].property.id): \(error.description)")
      }
    }
    guard !changes.isEmpty else {
      throw .wrongType(
        found: options.isEmpty ? "no properties" : "options alone",
        expected: "at least one property of the device",
        suggestion: nil
      )
    }
    return (changes, options)
  }
}
