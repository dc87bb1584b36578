// Settle
// SPDX-License-Identifier: Apache-2.0

/// What limits the commands of a lane: how many a second, how many at once, or both.
package struct LaneLimits: Hashable, Sendable {
  /// A token bucket.
  package struct Rate: Hashable, Sendable {
    /// Commands a second, more than zero.
    package var perSecond: Double
    /// How many commands may be sent at once after an idle time; at least one.
    package var burst: Int

    package init(perSecond: Double, burst: Int = 1) {
      self.perSecond = perSecond
      self.burst = burst
    }
  }

  /// How many commands may be in flight: sent, and neither confirmed nor failed.
  package struct Window: Hashable, Sendable {
    /// The size of the window as long as nothing was measured.
    package var start: Int
    /// The least size; at least one.
    package var min: Int
    /// The greatest size; one that equals the least fixes the window.
    package var max: Int

    /// What `window: auto` means.
    package static let auto = Window(start: 4, min: 1, max: 32)

    package init(start: Int, min: Int, max: Int) {
      self.start = start
      self.min = min
      self.max = max
    }
  }

  /// `nil` for any rate.
  package var rate: Rate?
  /// `nil` for any number of commands in flight.
  package var window: Window?

  package init(rate: Rate? = nil, window: Window? = nil) {
    self.rate = rate
    self.window = window
  }

  package init(rate: Double, burst: Int) {
    self.init(rate: Rate(perSecond: rate, burst: burst))
  }
}
