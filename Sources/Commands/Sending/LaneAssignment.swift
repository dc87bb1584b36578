// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices

/// The lane of each device, device by device, and the limits of the lanes.
struct LaneAssignment {
  /// By lane.
  let limits: [String: LaneLimits]
  private let numbers: [String: Int]
  private(set) var laneOfDevice: [Int32] = []

  /// `numbers` has the number of each lane that has a limit.
  init(limits: [String: LaneLimits], numbers: [String: Int]) {
    self.limits = limits
    self.numbers = numbers
  }

  /// Assigns the next device, to the lane without a limit if its own has none.
  mutating func add(_ lane: String?) {
    let limited = lane.flatMap { limits[$0] == nil ? nil : numbers[$0] }
    laneOfDevice.append(Int32(limited ?? 0))
  }
}
