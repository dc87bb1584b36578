// Settle
// SPDX-License-Identifier: Apache-2.0

/// Whether a device is online, by what its availability sources report.
struct DeviceAvailability {
  /// What each source reported last; `nil` counts as online.
  private var sources: [Bool?]
  /// Whether no source reports that the device is offline.
  private(set) var isOnline = true

  init(sources: Int) {
    self.sources = Array(repeating: nil, count: sources)
  }

  /// Records the report of one source.
  ///
  /// - Returns: Whether ``isOnline`` changed.
  mutating func report(_ isOnline: Bool, source: Int) -> Bool {
    sources[source] = isOnline
    let wasOnline = self.isOnline
    self.isOnline = !sources.contains(false)
    return self.isOnline != wasOnline
  }
}
