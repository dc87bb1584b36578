// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Says when something that goes on is worth a line in the log: at once, then ever more rarely.
///
/// The distance between two lines doubles from one to the next, up to a limit.
package struct LogPace: Sendable {
  private let range: ClosedRange<Duration>
  private var distance: Duration
  private var next: Moment?
  /// What has happened since the last line.
  package private(set) var untold: UInt64 = 0

  package init(_ range: ClosedRange<Duration> = .seconds(10)...(.seconds(600))) {
    self.range = range
    distance = range.lowerBound
  }

  /// Notes that it happened `count` times.
  ///
  /// - Returns: How often it has happened since the last line, this time included, if a line is due.
  package mutating func note(_ count: UInt64 = 1, at now: Moment) -> UInt64? {
    untold += count
    if let next {
      guard next <= now else { return nil }
      distance = min(distance * 2, range.upperBound)
    }
    next = now.advanced(by: distance)
    defer { untold = 0 }
    return untold
  }

  /// It is over: the next time is worth a line again, at once.
  ///
  /// - Returns: What has happened since the last line.
  @discardableResult
  package mutating func end() -> UInt64 {
    defer { self = LogPace(range) }
    return untold
  }
}
