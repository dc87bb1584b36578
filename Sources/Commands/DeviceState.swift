// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What the machine knows of a device as a whole.
struct DeviceState {
  /// Place in ``CommandStateMachine/lanes``.
  let lane: Int
  /// What each availability source said; `nil` while it has said nothing, which counts as online.
  var sources: [Bool?]
  /// After a failure there are no retries until the device reports again.
  var mayRetry = true

  init(lane: Int, sources: Int) {
    self.lane = lane
    self.sources = Array(repeating: nil, count: sources)
  }

  var isOnline: Bool { !sources.contains(false) }
}

/// Steps and toggles that wait for the device's state.
struct HeldSteps {
  enum Move {
    case step(Double)
    case toggle
  }

  var moves: [Move]
  var origin: ChangeOrigin?
  var number: UInt64
  var acceptedAt: Moment
  var stamp: UInt32
}
