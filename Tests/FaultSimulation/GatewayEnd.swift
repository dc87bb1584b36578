// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// How a gateway ends.
package enum GatewayEnd: Sendable {
  /// By an orderly shutdown.
  case shutdown
  /// By a signal that cannot be caught.
  case killed
  /// With the whole machine, whose wall clock is correct from `clockSet` on. Before that it
  /// continues from its last value if `isFrozen`, otherwise it is far in the past.
  case powerCut(clockSet: Moment, isFrozen: Bool)
}
