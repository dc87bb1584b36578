// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
internal import Values

/// A device: its properties and the settings that they share.
package struct Device: Hashable, Sendable {
  package var id: String
  package var name: String
  /// Where it is, such as a room; `nil` if nothing says so.
  package var area: String?
  /// Who made it; `nil` if nothing says so.
  package var details: DeviceDetails?
  /// Whether the panel shows it.
  package var isOnPanel = true
  /// The lane that its commands pass; `nil` for the default lane.
  package var lane: String?
  /// Whether pending properties with the same command topic share one message.
  package var merge = false
  /// Members of a device-level set that are sent with a command and never on their own.
  package var options: [String] = []
  /// What the numbers of some of these are multiplied by, such as 1000 for milliseconds.
  package var optionFactors: [String: Double] = [:]
  package var availability: [AvailabilitySource] = []
  /// Where it reports that it is awake; `nil` for a device that does not sleep.
  package var awake: AwakeSource?
  /// The devices that it stands for; `nil` for a device of its own.
  package var group: DeviceGroup?
  package var properties: [Property]

  package init(id: String, name: String, properties: [Property]) {
    self.id = id
    self.name = name
    self.properties = properties
  }

  /// An option as the device expects it: a number in the device's unit.
  package func option(_ member: JSONValue.Member) -> JSONValue.Member {
    guard let factor = optionFactors[member.name], let number = member.value.double else {
      return member
    }
    return JSONValue.Member(member.name, JSONValue(shortest: number * factor))
  }
}
