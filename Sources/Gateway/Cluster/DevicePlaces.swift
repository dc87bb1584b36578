// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Devices

/// The partition of each device, and which partitions this member of a cluster drives.
struct DevicePlaces {
  /// How many partitions the cluster has.
  let count: Int
  /// Of each device its partition, by number; -1 for one that is not in the files any more.
  private var partitions: [Int32] = []
  /// The devices of each partition, in the order of their definition.
  private var devices: [[Int]]
  private var isDriven: [Bool]

  init(_ registry: Registry, partitions count: Int) {
    self.count = count
    devices = Array(repeating: [], count: count)
    isDriven = Array(repeating: false, count: count)
    replaceDevices(registry)
  }

  /// Continues with the devices of a reload.
  mutating func replaceDevices(_ registry: Registry) {
    partitions = Array(repeating: -1, count: registry.devices.count)
    for place in devices.indices { devices[place] = [] }
    for device in registry.deviceNumbers {
      let partition = Partition(of: registry.id(ofDevice: device), count: count)
      partitions[device] = Int32(partition.number)
      devices[partition.number].append(device)
    }
  }

  /// The partition of a device; `nil` for one that was removed.
  func partition(ofDevice device: Int) -> Partition? {
    guard device < partitions.count, partitions[device] >= 0 else { return nil }
    return Partition(Int(partitions[device]))
  }

  /// The partition of a route, an input or a scene.
  func partition(ofName name: String) -> Partition { Partition(of: name, count: count) }

  func devices(of partition: Partition) -> [Int] { devices[partition.number] }

  func drives(_ partition: Partition) -> Bool { isDriven[partition.number] }

  /// Whether this member drives a device.
  func drives(device: Int) -> Bool {
    partition(ofDevice: device).map { isDriven[$0.number] } ?? false
  }

  mutating func set(_ partition: Partition, isDriven: Bool) {
    self.isDriven[partition.number] = isDriven
  }
}
