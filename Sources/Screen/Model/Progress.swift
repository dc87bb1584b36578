// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
package import Devices
package import LastOut

/// Where the newest change of a property stands, as the screen knows it.
package enum Progress: Hashable, Sendable {
  /// Nothing was asked yet.
  case idle
  /// The gateway asks the device for the value that a step counts from.
  case asking
  /// The key is not quiet yet.
  case settling(Countdown)
  /// Quiet, and held back by something else; until when, where that is known.
  case waiting(PendingRow.Waits, until: Moment?)
  case sending
  /// The broker has it, and the device has not confirmed it yet.
  case sent
  /// Nothing follows.
  case ended(Phase, reason: String?, at: Moment)

  /// Whether a value has not left yet.
  package var isOpen: Bool {
    switch self {
    case .asking, .settling, .waiting: true
    case .idle, .sending, .sent, .ended: false
    }
  }

  /// Whether the screen changes by itself while this lasts.
  package var isMoving: Bool {
    switch self {
    case .settling: true
    case .idle, .asking, .waiting, .sending, .sent, .ended: false
    }
  }
}
