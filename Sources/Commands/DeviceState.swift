// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What the machine knows of a device as a whole.
struct DeviceState {
  /// What each availability source said; `nil` while it has said nothing, which counts as online.
  private var sources: [Bool?]
  /// Whether every source that has spoken says online.
  private(set) var isOnline = true
  /// After a failure there are no retries until the device reports again.
  var mayRetry = true

  init(sources: Int) {
    self.sources = Array(repeating: nil, count: sources)
  }

  /// Notes what one source said; tells whether the device came or went with it.
  mutating func said(_ isOnline: Bool, by source: Int) -> Bool {
    sources[source] = isOnline
    let wasOnline = self.isOnline
    self.isOnline = !sources.contains(false)
    return self.isOnline != wasOnline
  }
}
