// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// A validated value on its way, with what is needed to answer for it.
package struct PendingChange: Sendable {
  package var value: Value
  /// Counts accepted changes; becomes the id where the caller gave none.
  package var number: UInt64
  /// When the change came in.
  package var acceptedAt: Moment
  /// How long it may wait for an absent broker or device; `nil`: as the property says.
  package var ttl: Duration?
  package var origin: ChangeOrigin?
  /// Members of the device-level set that ride with the command.
  package var options: [JSONValue.Member]?
}
