// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Publishes that wait for their acknowledgement, by token; one publish may carry several keys.
struct FlightTable {
  private struct Flight {
    var generation: UInt32 = 0
    var keys: [KeyIndex] = []
  }

  private var flights: [Flight] = []
  private var free: [Int] = []
  private let firstGeneration: UInt32

  /// - Parameter firstGeneration: What the generations of each place count from.
  init(firstGeneration: UInt32 = 0) { self.firstGeneration = firstGeneration }

  /// Notes a publish and names it.
  mutating func depart(_ keys: [KeyIndex]) -> UInt64 {
    let place: Int
    if let reused = free.popLast() {
      place = reused
    } else {
      place = flights.count
      flights.append(Flight(generation: firstGeneration))
    }
    flights[place].generation &+= 1
    flights[place].keys = keys
    return UInt64(flights[place].generation) << 32 | UInt64(place)
  }

  /// The keys that left under `token`, once; empty for a token that has landed already.
  mutating func land(_ token: UInt64) -> [KeyIndex] {
    let place = Int(token & 0xFFFF_FFFF)
    guard place < flights.count, flights[place].generation == UInt32(token >> 32) else { return [] }
    let keys = flights[place].keys
    guard !keys.isEmpty else { return [] }
    flights[place].keys = []
    free.append(place)
    return keys
  }
}
