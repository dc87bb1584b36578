// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
import MQTT
internal import MQTTTopics

/// A device as a value: messages and the time go in, messages and the next wake-up come out.
///
/// After any call look at ``nextWake``; at that moment call ``wake(at:)``. Time never goes back.
package protocol SimulatedDevice: Sendable {
  /// The topic filters the device listens on.
  var subscriptions: [String] { get }

  /// When the device wants to be asked again; `nil` while nothing moves.
  var nextWake: Moment? { get }

  /// What happened to the commands so far.
  var tally: CommandTally { get }

  /// What the broker publishes for the device when it is lost.
  var will: [DeviceMessage] { get }

  /// Comes up and says so.
  mutating func start(at now: Moment) -> [DeviceMessage]

  /// Takes one message; what it does not understand it answers as the real device would.
  mutating func receive(topic: String, payload: [UInt8], at now: Moment) -> [DeviceMessage]

  /// Lets time pass up to `now`.
  mutating func wake(at now: Moment) -> [DeviceMessage]
}

extension SimulatedDevice {
  /// Whether a message on `topic` is for this device.
  package func listens(to topic: String) -> Bool {
    subscriptions.contains { Topic.matches(filter: $0, name: topic) }
  }
}

/// How many commands reached a device, and how many of them it lost or refused.
package struct CommandTally: Hashable, Sendable {
  package var received = 0
  /// Arrived while the device was busy, and were lost.
  package var dropped = 0
  /// Could not be read.
  package var refused = 0

  package init(received: Int = 0, dropped: Int = 0, refused: Int = 0) {
    self.received = received
    self.dropped = dropped
    self.refused = refused
  }
}
