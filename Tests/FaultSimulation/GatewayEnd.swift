// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// How a gateway ends.
package enum GatewayEnd: Sendable {
  /// In good order, by itself.
  case shutdown
  /// By a signal that cannot be caught.
  case killed
  /// With the whole machine, whose wall clock is right again from `clockSet` on. Until then it
  /// continues where it stood when `isFrozen`, else it is far in the past.
  case powerCut(clockSet: Moment, isFrozen: Bool)
}
