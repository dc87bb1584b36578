// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What requests for states cost in a lane: a token, and room in the window until they are answered.
extension LaneTable {
  /// Whether a request may be sent: no command waits, and one that comes finds room.
  func mayRequest(in lane: Int, at now: Moment) -> Bool {
    nextRequestToken(in: lane, after: now) == now
  }

  /// When a request may be sent, as far as the rate goes; `nil` while commands have the lane or its
  /// window.
  func nextRequestToken(in lane: Int, after now: Moment) -> Moment? {
    guard lanes[lane].count == 0 else { return nil }
    if let window = lanes[lane].window, window.inFlight >= max(1, window.capacity - 1) {
      return nil
    }
    return lanes[lane].bucket?.nextToken(after: now) ?? now
  }

  /// A request was sent.
  ///
  /// - Returns: How long it takes up room in the window without an answer; `nil` without a window.
  mutating func request(in lane: Int, at now: Moment) -> Duration? {
    _ = lanes[lane].bucket?.take(at: now)
    lanes[lane].window?.begin()
    return lanes[lane].window?.patience
  }

  /// A request no longer takes up room.
  mutating func endRequest(in lane: Int) { lanes[lane].window?.end() }
}
