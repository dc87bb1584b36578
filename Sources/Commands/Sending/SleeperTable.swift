// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

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
