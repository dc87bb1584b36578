// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// How a gateway ends.
package enum GatewayEnd: Sendable {
  /// In good order, by itself.
  case shutdown
  /// By a signal that cannot be caught.
  case killed
  /// With the whole machine, whose time of day is right again from `clockSet` on.
  case powerCut(clockSet: Moment)
}
