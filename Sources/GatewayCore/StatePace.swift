// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// How long a topic of the echo rests after it was shown.
///
/// 100 ms, as long as few topics move. Three topics move with each key, so a flood on a thousand
/// keys would be answered with 30,000 retained messages a second: the gateway would be the flood
/// that it is there to end. Where more than ``budget`` topics move at once, each rests for longer,
/// so that there are no more than 5,000 a second in all, one second at most.
///
/// Cost: constant.
struct StatePace {
  /// The rest where few topics move, in nanoseconds, and the longest.
  static let usual: UInt64 = 100_000_000
  static let longest: UInt64 = 1_000_000_000
  /// How many topics may be shown in each ``usual`` rest.
  static let budget: UInt64 = 500

  /// The rest of a topic that is shown now, in nanoseconds.
  private(set) var rest = usual
  private var count: UInt64 = 0
  private var since = Moment.zero

  /// A topic is shown at `now`.
  mutating func shown(at now: Moment) {
    count += 1
    let elapsed = now.nanoseconds &- since.nanoseconds
    guard elapsed >= Self.usual else { return }
    // Each topic that moves is shown once in a rest; so many move as are shown in one.
    let perRest = Double(count) * Double(rest) / Double(elapsed)
    let needed = UInt64(perRest / Double(Self.budget) * Double(Self.usual))
    rest = min(max(needed, Self.usual), Self.longest)
    count = 0
    since = now
  }
}
