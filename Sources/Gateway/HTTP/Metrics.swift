// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// What is counted for each device, for whoever collects metrics.
struct DeviceTally: Sendable {
  var changes: UInt64 = 0
  var collapsed: UInt64 = 0
  var unchanged: UInt64 = 0
  var rejected: UInt64 = 0
  var cancelled: UInt64 = 0
  var sent: UInt64 = 0
  var confirmed: UInt64 = 0
  var failed: UInt64 = 0
  var expired: UInt64 = 0

  /// Counts an event; what was replaced is counted with the command that left, was unnecessary or
  /// was cancelled.
  mutating func record(_ event: CommandEvent) {
    switch event.phase {
    case .accepted, .superseded, .sending: return
    case .unchanged: unchanged += 1
    case .cancelled: cancelled += 1
    case .rejected: return rejected += 1
    case .sent:
      sent += 1
      guard event.attempt == 1 else { return }
    case .confirmed: return confirmed += 1
    case .failed: return failed += 1
    case .expired: expired += 1
    }
    collapsed += UInt64(event.collapsed)
  }
}

/// What the gateway counts beside its state machine.
struct GatewayTallies {
  var devices: [DeviceTally]
  /// From handing a command to MQTT until the broker's acknowledgement.
  var acknowledgement = DurationHistogram(
    bounds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000].map { .milliseconds($0) }
  )
  /// When the commands that are on their way were handed over, in that order; as many as the window
  /// allows.
  private var departures: [(token: UInt64, at: Moment)] = []

  init(devices: Int) {
    self.devices = Array(repeating: DeviceTally(), count: devices)
  }

  mutating func extend(devices count: Int) {
    for _ in devices.count..<count { devices.append(DeviceTally()) }
  }

  mutating func sent(_ token: UInt64, at now: Moment) { departures.append((token, now)) }

  mutating func answered(_ token: UInt64, isAcknowledged: Bool, at now: Moment) {
    guard let place = departures.firstIndex(where: { $0.token == token }) else { return }
    let start = departures.remove(at: place).at
    if isAcknowledged { acknowledgement.note(start.duration(to: now)) }
  }
}
