// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
import Values

/// An accepted value, with what its command and its events need.
struct PendingChange: Sendable {
  var value: Value
  /// Counts accepted changes; becomes the identifier where the requester gave none.
  var number: UInt64
  var acceptedAt: Moment
  /// Until when it may wait for an offline broker or device.
  var expiresAt: Moment
  var origin: ChangeOrigin?
  /// Members that are sent with the command, see ``Device/options``.
  var members: [JSONValue.Member]?
  /// Whether an earlier process accepted it.
  var isReplayed = false
  /// Whether it contradicts another value of its change, and is sent in that one's message or not
  /// at all.
  var rides = false
}
