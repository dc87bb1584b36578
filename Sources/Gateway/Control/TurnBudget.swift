// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// The work that one turn of the loop does for all clients of the control socket together.
///
/// What is left over is done in later turns, each client in turn. Work is counted in units of about
/// a quarter of a microsecond, so that tests can count it. The time is limited too, for slow
/// machines.
final class TurnBudget {
  /// The units of one turn.
  static let work = 20_000
  /// The units of one client, if others wait for their turn.
  static let slice = 1024
  /// How long a turn may take, in nanoseconds.
  private static let time: UInt64 = 5_000_000

  /// What the parts of a request cost.
  enum Cost {
    /// A line and what most requests do.
    static let line = 8
    /// A key that a pattern is compared with.
    static let key = 2
    /// A row of `get` or `pending`.
    static let row = 10
    /// A row of `describe`.
    static let description = 32
    /// So many bytes of a line cost one unit.
    static let bytes = 32
  }

  private(set) var left = work
  /// Clients that wait for their turn.
  var waiting = 0
  private var end: UInt64?

  /// Whether the rest has to wait for the next turn.
  var isSpent: Bool {
    guard left > 0 else { return true }
    let now = EventLoop.now().nanoseconds
    guard let end else {
      self.end = now &+ Self.time
      return false
    }
    return now >= end
  }

  /// The units that one client may spend now: its share of what is left, but at least a slice.
  var share: Int { max(Self.slice, left / (waiting + 1)) }

  func spend(_ units: Int) { left -= units }

  /// Begins the next turn.
  func renew() {
    left = Self.work
    end = nil
  }
}
