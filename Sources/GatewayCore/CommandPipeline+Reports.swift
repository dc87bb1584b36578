// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import Durability
package import JSON
package import LastOut

/// What concerns commands alone: what devices report beside their states, and the journal's thread.
extension CommandPipeline {
  // MARK: - Devices

  /// The convention's own acknowledgement of a value.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    commands.advance(to: now)
    commands.acknowledged(key, wire, at: now)
  }

  /// A device replied to a message; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    commands.advance(to: now)
    commands.replied(key, to: message, problem: problem, at: now)
  }

  /// One availability source of a device reported.
  ///
  /// - Returns: Whether the device is online or offline now and was not before.
  package mutating func availability(
    ofDevice device: Int,
    source: Int,
    isOnline: Bool,
    at now: Moment
  ) -> Bool {
    commands.advance(to: now)
    let wasOnline = commands.dispatcher.sendQueue.isDeviceOnline(device)
    commands.dispatcher.availabilityChanged(
      of: device,
      source: source,
      isOnline: isOnline,
      at: now
    )
    return commands.dispatcher.sendQueue.isDeviceOnline(device) != wasOnline
  }

  /// A device that sleeps most of the time reported itself.
  package mutating func awoke(device: Int, at now: Moment) {
    commands.advance(to: now)
    commands.dispatcher.deviceAwoke(device, at: now)
  }

  // MARK: - The journal

  /// What became of ``Effect/write(_:)``.
  package mutating func storeFinished(_ result: JournalResult, at now: Moment) {
    let registry = commands.registry
    durability?.finished(result, in: registry, at: now)
  }

  /// The answer to ``Effect/readClock``.
  package mutating func clockRead(_ clock: JournalClock) { durability?.judge(clock) }

  /// The answer to ``Effect/closeStore``.
  package mutating func storeClosed() { durability?.closed() }
}
