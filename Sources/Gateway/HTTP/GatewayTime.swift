// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// The gateway's time for its clients: that of the wall clock at the start, and steady since then.
///
/// A wall clock that is set later does not change it, so that no request becomes too late by that.
struct GatewayTime {
  /// When it began, in milliseconds since 1970; with it a client recognises another run.
  let start: Int64
  private let moment: Moment

  init(startingAt start: Int64 = WallClock.milliseconds(), at moment: Moment = EventLoop.now()) {
    self.start = start
    self.moment = moment
  }

  /// The time in milliseconds.
  func milliseconds(at now: Moment) -> Int64 { start + Int64(moment.milliseconds(to: now)) }
}
