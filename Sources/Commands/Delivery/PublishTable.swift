// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The publishes that await the broker's acknowledgement, by token.
///
/// One publish may carry the commands of several keys. A place in the table is reused with another
/// generation, so that a late answer to an earlier publish is recognised.
struct PublishTable {
  private struct Publish {
    var generation: UInt32 = 0
    /// Empty while the place is free.
    var keys: [KeyIndex] = []
  }

  private var publishes: [Publish] = []
  private var free: [Int] = []
  private let firstGeneration: UInt32

  /// - Parameter firstGeneration: What the generations of each place count from.
  init(firstGeneration: UInt32 = 0) { self.firstGeneration = firstGeneration }

  /// Records a publish and returns its token.
  mutating func insert(_ keys: [KeyIndex]) -> UInt64 {
    let place: Int
    if let reused = free.popLast() {
      place = reused
    } else {
      place = publishes.count
      publishes.append(Publish(generation: firstGeneration))
    }
    publishes[place].generation &+= 1
    publishes[place].keys = keys
    return UInt64(publishes[place].generation) << 32 | UInt64(place)
  }

  /// Removes the publish with this token and returns its keys; none for a token that was removed.
  mutating func remove(_ token: UInt64) -> [KeyIndex] {
    let place = Int(token & 0xFFFF_FFFF)
    guard place < publishes.count, publishes[place].generation == UInt32(token >> 32) else {
      return []
    }
    let keys = publishes[place].keys
    guard !keys.isEmpty else { return [] }
    publishes[place].keys = []
    free.append(place)
    return keys
  }
}
