// Settle
// SPDX-License-Identifier: Apache-2.0

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
