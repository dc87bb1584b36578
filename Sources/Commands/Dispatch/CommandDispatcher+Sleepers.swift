// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut

/// Devices that sleep: their commands wait until the device reports itself.
extension CommandDispatcher {
  /// Whether commands of a key wait until its device reports itself.
  package func sleeps(_ key: KeyIndex) -> Bool { facts[key].sleeps }

  /// A sleeping device reported itself: what waits of it is sent, even before it is quiet, because
  /// the device may not listen for long.
  package mutating func deviceAwoke(_ device: Int, at now: Moment) {
    guard registry.sleeps(device) else { return }
    deliveries.deviceResponded(device)
    for number in registry.indices(ofDevice: device) {
      migrate(KeyIndex(number), at: now)
      flush(KeyIndex(number), at: now)
    }
    sendQueue.deviceAwoke(device)
  }
}
