// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import Routing

/// Several properties of a device at once: they share one instant, and are accepted or rejected
/// together.
extension GatewayHost {
  private typealias Changes = [(key: KeyIndex, value: Value)]

  /// Receives a message on a device's `set` topic.
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
      try core.change(
        changes,
        receivedOn: Text.of(topic),
        at: now,
        ChangeOptions(origin: origin, members: options.isEmpty ? nil : options)
      )
      tallies.devices[device].changes += UInt64(changes.count)
    } catch {
      // The sender gets one reply for all of it: here only the event topics are told.
      for (key, value) in values(namedBy: members, ofDevice: device) {
        let number = core.reject(key, reason: error.description, at: now, origin: nil)
        rejectedValues[number] = value
      }
      throw error
    }
  }

  /// The named properties and their values, each once; unknown names are left out.
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
    return (changes, options)
  }
}
