// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Simulation

/// Drives a simulated device on virtual time and records its messages.
struct VirtualBench<Device: SimulatedDevice> {
  var device: Device
  private(set) var now = Moment.zero
  /// `milliseconds topic payload`, in order.
  private(set) var log: [String] = []

  init(_ device: Device) {
    self.device = device
    record(self.device.start(at: now))
  }

  /// Advances the device to `milliseconds`.
  mutating func advance(to milliseconds: Int) {
    let end = Moment(nanoseconds: UInt64(milliseconds) * 1_000_000)
    while let wake = device.nextWake, wake <= end {
      now = max(now, wake)
      record(device.wake(at: now))
    }
    now = end
  }

  /// Sends the device one message at `milliseconds`.
  mutating func send(_ payload: String, to topic: String, at milliseconds: Int) {
    advance(to: milliseconds)
    record(device.receive(DeviceMessage(topic: topic, text: payload), at: now))
  }

  /// Returns the log and clears it.
  mutating func takeLog() -> [String] {
    defer { log = [] }
    return log
  }

  private mutating func record(_ messages: [DeviceMessage]) {
    for message in messages {
      log.append("\(now.nanoseconds / 1_000_000) \(message.topic) \(message.text)")
    }
  }
}
