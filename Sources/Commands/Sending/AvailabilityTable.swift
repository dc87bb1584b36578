// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// Which devices are online.
struct AvailabilityTable {
  private var devices: LazyArray<DeviceAvailability>
  /// Devices whose sources a reload has replaced since they reported; empty before the first.
  private var isOutdated: [Bool] = []

  init(_ registry: Registry) {
    devices = LazyArray(repeating: DeviceAvailability(), count: registry.devices.count)
  }

  func isOnline(_ device: Int) -> Bool {
    devices[device].isOnline || (!isOutdated.isEmpty && isOutdated[device])
  }

  /// Records the report of one source.
  ///
  /// - Returns: Whether ``isOnline(_:)`` changed.
  mutating func report(_ isOnline: Bool, source: Int, of device: Int) -> Bool {
    devices[device].report(isOnline, source: source)
  }

  /// Forgets what the sources of a device reported: nobody listens to them any more.
  mutating func forget(_ device: Int) { devices[device] = DeviceAvailability() }

  // MARK: - Reload

  /// Makes room for more devices, whose sources the caller replaces.
  mutating func extend(devices count: Int) { devices.extend(to: count) }

  /// Counts the devices that `isOutdated` names as online, without visiting any;
  /// ``reset(_:in:)`` follows for each.
  mutating func replaceSources(of isOutdated: [Bool]) { self.isOutdated = isOutdated }

  /// Gives a device its new sources, none of which has reported, if a reload has replaced them.
  mutating func reset(_ device: Int) {
    guard !isOutdated.isEmpty, isOutdated[device] else { return }
    isOutdated[device] = false
    devices[device] = DeviceAvailability()
  }
}

/// Whether a device is online, by what its availability sources report.
struct DeviceAvailability {
  /// The sources that reported last that the device is offline; one that has not reported counts as
  /// online.
  private var offline: [Int] = []

  /// Whether no source reports that the device is offline.
  var isOnline: Bool { offline.isEmpty }

  /// Records the report of one source.
  ///
  /// - Returns: Whether ``isOnline`` changed.
  mutating func report(_ isOnline: Bool, source: Int) -> Bool {
    let wasOnline = self.isOnline
    offline.removeAll { $0 == source }
    if !isOnline { offline.append(source) }
    return self.isOnline != wasOnline
  }
}

/// The commands of sleeping devices that may be sent, because their device has reported itself
/// since they wait.
///
/// A device counts as asleep again as soon as nothing of it waits: what is accepted later waits for
/// its next report. So does a command that must be repeated.
struct SleeperTable {
  /// What commands of a sleeping device wait for, in words.
  static var reason: String { "the device is asleep" }

  private var released: Set<KeyIndex> = []

  /// Whether the command of `key` waits for its device.
  func isAsleep(_ key: KeyIndex) -> Bool { released.isEmpty || !released.contains(key) }

  /// The device of `key`, which has a command, reported itself.
  mutating func wake(_ key: KeyIndex) { released.insert(key) }

  /// The command of `key` was sent or has ended.
  mutating func end(_ key: KeyIndex) {
    if !released.isEmpty { released.remove(key) }
  }

  /// The broker is gone: until it is back every device has gone to sleep again.
  mutating func endAll() { released = [] }
}
