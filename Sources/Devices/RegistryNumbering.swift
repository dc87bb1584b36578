// Settle
// SPDX-License-Identifier: Apache-2.0

/// Assigns numbers to devices and properties, and keeps those of an earlier registry.
struct RegistryNumbering {
  private(set) var devices: [Device] = []
  private(set) var properties: [Registry.Entry] = []
  private(set) var members: [[Int32]] = []
  private(set) var order: [Int] = []
  private var deviceNumbers: [String: Int] = [:]
  private var keyNumbers: [String: Int] = [:]

  /// The devices of the earlier registry.
  private let old: [Device]
  /// Which properties of the earlier registry were added again.
  private var isListed: [Bool] = []

  /// Starts with everything in `old`; ``retireOthers()`` retires what is not added again.
  init(_ old: Registry?) {
    self.old = old?.devices ?? []
    guard let old else { return }
    devices = old.devices
    properties = old.properties
    members = Array(repeating: [], count: devices.count)
    for number in devices.indices {
      devices[number].properties = []
      devices[number].availability = []
      devices[number].awake = nil
      devices[number].group = nil
      deviceNumbers[devices[number].id] = number
    }
    for place in properties.indices { keyNumbers[properties[place].key] = place }
    isListed = Array(repeating: false, count: properties.count)
  }

  mutating func add(_ device: Device) {
    let number = deviceNumbers[device.id] ?? devices.count
    if number == devices.count {
      devices.append(device)
      members.append([])
    } else {
      devices[number] = number < old.count ? Self.sharing(device, with: old[number]) : device
    }
    deviceNumbers[device.id] = number
    order.append(number)
    for property in device.properties {
      let key = "\(device.id)/\(property.id)"
      let place = keyNumbers[key] ?? properties.count
      if place == properties.count {
        properties.append(Registry.Entry(key: key, device: number, property: property))
      } else if properties[place].isRetired || properties[place].property != property {
        properties[place] = Registry.Entry(key: key, device: number, property: property)
      }
      if place < isListed.count { isListed[place] = true }
      keyNumbers[key] = place
      members[number].append(Int32(place))
    }
  }

  /// A device as it was read again, in the memory of what has not changed.
  ///
  /// So a reload that changes little leaves little memory behind for the allocator to collect.
  private static func sharing(_ device: Device, with old: Device) -> Device {
    guard device != old else { return old }
    var device = device
    for (place, property) in device.properties.enumerated()
    where place < old.properties.count && old.properties[place] == property {
      device.properties[place] = old.properties[place]
    }
    return device
  }

  /// Retires the properties of the earlier registry that were not added again.
  mutating func retireOthers() {
    for place in isListed.indices where !isListed[place] && !properties[place].isRetired {
      properties[place] = properties[place].retired
    }
  }
}
