// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
package import LastOut
package import Values

/// The progress of a property's newest change, as far as the screen knows.
package enum Progress: Hashable, Sendable {
  /// No change was requested.
  case idle
  /// The gateway requests the device's value, which a step is added to.
  case querying
  /// The quiet period runs.
  case settling(Countdown)
  /// Settled and held back by something else, until a time if that is known.
  case waiting(PendingRow.Waits, until: Moment?)
  case sending
  /// Acknowledged by the broker and not yet confirmed by the device.
  case sent
  /// In its final phase.
  case ended(Phase, reason: String?, at: Moment)

  /// Whether the value is not sent yet.
  package var isPending: Bool {
    switch self {
    case .querying, .settling, .waiting: true
    case .idle, .sending, .sent, .ended: false
    }
  }

  /// Whether the screen must be redrawn as time passes.
  package var isMoving: Bool {
    switch self {
    case .settling: true
    case .idle, .querying, .waiting, .sending, .sent, .ended: false
    }
  }
}

/// A running quiet period: when it ends, and its length since the last change.
package struct Countdown: Hashable, Sendable {
  package var due: Moment
  package var span: Duration

  package init(due: Moment, span: Duration) {
    self.due = due
    self.span = span
  }

  /// The remaining time; zero when it is over.
  package func remaining(at now: Moment) -> Duration { max(.zero, now.duration(to: due)) }

  /// The remaining fraction, from 1 down to 0.
  package func fraction(at now: Moment) -> Double {
    span > .zero ? min(1, remaining(at: now) / span) : 0
  }
}
