// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// A step or toggle that waits for the device's state.
struct HeldStep {
  /// How many may wait for one key.
  static let limit = 1024

  var change: CommandStateMachine.Change
  var number: UInt64
  var acceptedAt: Moment
  var terms: CommandStateMachine.Terms
}
