// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import Values

/// Several properties of a device that change at one instant, on whatever surface they were asked
/// for; they are accepted or rejected together.
struct DeviceSet {
  /// The properties and the options of a set, all of them valid.
  struct Changes {
    var values: [(key: KeyIndex, value: Value)] = []
    /// Members that are sent with the commands; see ``Device/options``.
    var options: [JSONValue.Member] = []
  }

  let device: Int
  let members: [JSONValue.Member]
  /// The members with numbers as they were written; see ``ControlRequest/written``.
  var written: JSONValue?

  /// The properties and the options; of a property that is named twice the last value counts.
  func changes(in registry: Registry) throws(ValidationError) -> Changes {
    let description = registry.devices[device]
    var changes = Changes()
    var places: [KeyIndex: Int] = [:]
    for member in members {
      if description.options.contains(member.name) {
        changes.options.append(description.option(member))
        continue
      }
      let key = try registry.index(of: member.name, inDevice: device)
      do throws(ValidationError) {
        let value = try registry.value(
          from: member.value,
          written: written?[member.name],
          of: key
        )
        if let place = places[key] {
          changes.values[place].value = value  // By another of its names.
        } else {
          places[key] = changes.values.count
          changes.values.append((key, value))
        }
      } catch {
        throw .inProperty(registry.definition(of: key).property.id, error)
      }
    }
    guard !changes.values.isEmpty else {
      throw .wrongType(
        found: changes.options.isEmpty ? "no properties" : "options alone",
        expected: "at least one property of the device",
        suggestion: nil
      )
    }
    return changes
  }

  /// The named properties with their values, each once, without unknown names.
  func named(in registry: Registry) -> [(key: KeyIndex, value: JSONValue)] {
    var seen: Set<KeyIndex> = []
    return members.compactMap { member in
      guard let key = try? registry.index(of: member.name, inDevice: device),
        seen.insert(key).inserted
      else { return nil }
      return (key, member.value)
    }
  }

  /// Emits a rejection of each named property; `false` if there is none.
  @discardableResult
  func reject(
    because reason: String,
    origin: ChangeOrigin?,
    in context: GatewayContext,
    at now: Moment
  ) -> Bool {
    let named = named(in: context.registry)
    for (key, value) in named {
      let number = context.core.reject(key, reason: reason, at: now, origin: origin)
      context.encoder.keepRejectedValue(value, ofEvent: number)
    }
    return !named.isEmpty
  }
}
