// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Decides when a repeated event is logged: at once, then less and less often.
///
/// The time between two lines doubles up to a limit.
package struct LogPace: Sendable {
  private let range: ClosedRange<Duration>
  private var distance: Duration
  private var next: Moment?
  /// The number of events since the last line.
  package private(set) var unlogged: UInt64 = 0

  package init(_ range: ClosedRange<Duration> = .seconds(10)...(.seconds(600))) {
    self.range = range
    distance = range.lowerBound
  }

  /// Records `count` events.
  ///
  /// - Returns: The events since the last line, these included, if a line is due.
  package mutating func record(_ count: UInt64 = 1, at now: Moment) -> UInt64? {
    unlogged += count
    if let next {
      guard next <= now else { return nil }
      distance = min(distance * 2, range.upperBound)
    }
    next = now.advanced(by: distance)
    defer { unlogged = 0 }
    return unlogged
  }

  /// Starts over: the next event is logged at once.
  ///
  /// - Returns: The events since the last line.
  @discardableResult
  package mutating func end() -> UInt64 {
    defer { self = LogPace(range) }
    return unlogged
  }
}
