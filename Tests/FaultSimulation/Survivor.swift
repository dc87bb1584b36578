// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// An accepted value that is not sent yet.
package struct Survivor: Hashable, Sendable {
  package var key: KeyIndex
  package var value: Value
  /// Counts accepted values, restarts included.
  package var order: UInt64
  /// When it expires.
  package var expiresAt: Moment
  package var isUrgent = false
  /// The option that is sent with it, in seconds.
  package var transition: Double?
}
