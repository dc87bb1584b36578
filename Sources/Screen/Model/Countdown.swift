// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// A quiet period that runs: when it ends, and how long it was from the last change.
package struct Countdown: Hashable, Sendable {
  package var due: Moment
  package var span: Duration

  package init(due: Moment, span: Duration) {
    self.due = due
    self.span = span
  }

  /// What is left; zero once it is over.
  package func remaining(at now: Moment) -> Duration { max(.zero, now.duration(to: due)) }

  /// What is left of the whole, from 1 down to 0.
  package func fraction(at now: Moment) -> Double {
    span > .zero ? min(1, remaining(at: now) / span) : 0
  }
}
