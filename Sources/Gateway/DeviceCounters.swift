// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Values

/// Counts the changes and commands of one device, for metrics.
struct DeviceCounters: Sendable {
  var changes: UInt64 = 0
  var collapsed: UInt64 = 0
  var unchanged: UInt64 = 0
  var rejected: UInt64 = 0
  var cancelled: UInt64 = 0
  var sent: UInt64 = 0
  var confirmed: UInt64 = 0
  var failed: UInt64 = 0
  var expired: UInt64 = 0

  /// Counts an event.
  ///
  /// Replaced values are counted with the command that was sent, was unnecessary or was cancelled.
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
