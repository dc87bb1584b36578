// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// What a key shows: its values, and the phase of its newest command.
package struct KeyStatus: Sendable {
  /// What was requested last; `nil` where nothing is known of the device either.
  package var target: Value?
  /// What the device reported last.
  package var actual: Value?
  /// The phase of the newest command; `nil` before the first.
  package var phase: Phase?
  /// When ``phase`` or ``actual`` last changed; `nil` if never.
  package var since: Moment?
}
