// Settle
// SPDX-License-Identifier: Apache-2.0

/// The rooms of groups and of their members.
///
/// A group is in the room that its members have in common. Many groups are no rooms, such as
/// "all blinds", so a group's name gives its members a room only where other devices are in it.
enum GroupAreas {
  /// Completes the rooms of `devices`; `rooms` are those that announcements name.
  static func complete(_ devices: inout [ImportedDevice], rooms: [String]) {
    var known: [String: String] = [:]
    for room in rooms + devices.compactMap(\.area) {
      known[room.lowercased()] = known[room.lowercased()] ?? room
    }
    var places: [String: Int] = [:]
    for (place, device) in devices.enumerated() { places[device.identity] = place }
    for group in devices.indices where !devices[group].members.isEmpty {
      let members = devices[group].members.compactMap { places[$0] }
      if let room = known[devices[group].name.lowercased()] {
        for place in members + [group] where devices[place].area == nil {
          devices[place].area = room
        }
      } else if devices[group].area == nil, let first = members.first,
        members.allSatisfy({ devices[$0].area == devices[first].area })
      {
        devices[group].area = devices[first].area
      }
    }
  }
}
