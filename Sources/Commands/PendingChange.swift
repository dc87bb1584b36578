// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut

/// A validated value on its way, with what is needed to answer for it.
struct PendingChange: Sendable {
  var value: Value
  /// Counts accepted changes; becomes the id where the caller gave none.
  var number: UInt64
  /// When the change came in.
  var acceptedAt: Moment
  /// Until when it may wait for an absent broker or device.
  var expiresAt: Moment
  var origin: ChangeOrigin?
  /// Members of the device-level set that ride with the command.
  var options: [JSONValue.Member]?
  /// Accepted before a restart.
  var isReplayed = false
}
