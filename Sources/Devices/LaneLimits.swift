// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

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

  /// Messages that say that the mesh or bus has no room for commands.
  package struct Busy: Hashable, Sendable {
    package var topic: String
    /// Where in the payload the text is.
    package var value: JSONPointer
    package var pattern: Pattern

    package init(topic: String, value: JSONPointer, pattern: Pattern) {
      self.topic = topic
      self.value = value
      self.pattern = pattern
    }

    /// Whether a message on the topic says so; of a text without quotes, of anything else its JSON
    /// is compared.
    package func matches(_ document: JSONValue) -> Bool {
      guard let found = value.value(in: document) else { return false }
      if case .string(let text) = found { return pattern.matches(text) }
      return pattern.matches(JSONWriter.text(found))
    }
  }

  /// `nil` for any rate.
  package var rate: Rate?
  /// `nil` for any number of commands in flight.
  package var window: Window?
  /// What closes the window, beside losses.
  package var busy: Busy?

  package init(rate: Rate? = nil, window: Window? = nil, busy: Busy? = nil) {
    self.rate = rate
    self.window = window
    self.busy = busy
  }

  package init(rate: Double, burst: Int) {
    self.init(rate: Rate(perSecond: rate, burst: burst))
  }
}

extension LaneLimits {
  /// The limits of a gateway that drives `part` of `whole` devices of a lane: what all gateways may
  /// send together is what one may.
  ///
  /// Each that drives a device may have one command in flight; with many gateways and a small
  /// window, they have more together than it allows.
  package func share(_ part: Int, of whole: Int) -> LaneLimits {
    guard part > 0, part < whole else { return self }
    let share = Double(part) / Double(whole)
    let scaled = { (size: Int) in Swift.max(1, Int((Double(size) * share).rounded())) }
    var limits = self
    if let rate {
      limits.rate = Rate(perSecond: rate.perSecond * share, burst: scaled(rate.burst))
    }
    if let window {
      limits.window = Window(
        start: scaled(window.start),
        min: scaled(window.min),
        max: scaled(window.max)
      )
    }
    return limits
  }
}
