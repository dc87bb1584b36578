// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
import MQTT

/// A device as a value: messages and times go in, messages and the next wake-up come out.
///
/// After any call, read ``nextWake`` and call ``wake(at:)`` at that time. Time must not decrease.
package protocol SimulatedDevice: Sendable {
  /// The topic filters that the device subscribes to.
  var subscriptions: [String] { get }

  /// The time of the next call of ``wake(at:)``; `nil` while nothing changes.
  var nextWake: Moment? { get }

  /// The counts of received, dropped and refused commands.
  var tally: CommandTally { get }

  /// The device's last will.
  var will: [DeviceMessage] { get }

  /// Starts the device and returns its first messages.
  mutating func start(at now: Moment) -> [DeviceMessage]

  /// Handles one message; replies to invalid ones as the real device does.
  mutating func receive(topic: String, payload: [UInt8], at now: Moment) -> [DeviceMessage]

  /// Advances the device to `now`.
  mutating func wake(at now: Moment) -> [DeviceMessage]
}

extension SimulatedDevice {
  /// Whether the device subscribes to `topic`.
  package func listens(to topic: String) -> Bool {
    subscriptions.contains { Topic.matches(filter: $0, name: topic) }
  }
}

/// The numbers of commands that a device received, dropped and refused.
package struct CommandTally: Hashable, Sendable {
  package var received = 0
  /// Commands that were lost because the device was busy.
  package var dropped = 0
  /// Commands that were invalid.
  package var refused = 0

  package init(received: Int = 0, dropped: Int = 0, refused: Int = 0) {
    self.received = received
    self.dropped = dropped
    self.refused = refused
  }
}
