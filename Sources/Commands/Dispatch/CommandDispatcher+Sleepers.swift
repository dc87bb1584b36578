// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut

/// Devices that sleep: their commands wait until the device reports itself.
extension CommandDispatcher {
  /// Whether commands of a key wait until its device reports itself.
  package func sleeps(_ key: KeyIndex) -> Bool { facts[key].sleeps }

  /// Why the command of `key` cannot be sent, where its broker or its device keep it back.
  func waitReason(of key: KeyIndex) -> String {
    guard sendQueue.isOnline(key) else { return sendQueue.offlineReason }
    return facts[key].sleeps ? Self.asleep : sendQueue.offlineReason
  }

  /// What commands of a sleeping device wait for, in words.
  static var asleep: String { "the device is asleep" }

  /// A sleeping device reported itself: what waits of it is sent, even before it is quiet, because
  /// the device may not listen for long.
  mutating func deviceAwoke(_ device: Int, at now: Moment) {
    guard registry.devices[device].awake != nil else { return }
    deliveries.deviceResponded(device)
    for number in registry.indices(ofDevice: device) {
      migrate(KeyIndex(number), at: now)
      flush(KeyIndex(number), at: now)
    }
    sendQueue.deviceAwoke(device)
  }
}

extension CommandStateMachine {
  /// A device that sleeps most of the time reported itself.
  package mutating func awoke(device: Int, at now: Moment) {
    dispatcher.deviceAwoke(device, at: now)
  }
}
