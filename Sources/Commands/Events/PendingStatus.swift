// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// The value of a key that waits to be sent; of an action, the one that is sent next.
package struct PendingStatus: Sendable {
  /// What a value waits for.
  package enum Waiting: String, Sendable {
    /// The end of its quiet period.
    case quiet
    /// A token of its lane, or its turn.
    case lane
    /// The broker's acknowledgement of the key's previous command.
    case inFlight = "in_flight"
    /// The broker or the device.
    case offline
    /// The next report of a device that sleeps.
    case asleep
  }

  package var key: KeyIndex
  package var value: Value
  /// How many earlier changes it stands for.
  package var collapsed: Int
  /// How many commands wait; more than one only of an action.
  package var count = 1
  package var waits: Waiting
  /// When it is sent, as far as that is known; when it expires, if it waits for a broker or a device.
  package var due: Moment?
}

extension PendingStatus {
  /// A value that waits for quiet, maybe behind a command that it will replace.
  init(_ pending: LastOutCore<PendingChange>.Pending, of key: KeyIndex, behind command: Command?) {
    self.key = key
    value = pending.value.value
    collapsed = pending.collapsed + (command.map { $0.collapsed + 1 } ?? 0)
    waits = .quiet
    due = pending.due
  }

  /// A command that waits to be sent.
  init(_ command: Command, of key: KeyIndex, count: Int, waits: Waiting) {
    self.key = key
    value = command.value
    collapsed = command.collapsed
    self.count = count
    self.waits = waits
    due = waits == .offline || waits == .asleep ? command.change.expiresAt : nil
  }
}
