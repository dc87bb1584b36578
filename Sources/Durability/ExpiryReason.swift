// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a value of an earlier process is not sent.
package enum ExpiryReason: Hashable, Sendable, CustomStringConvertible {
  /// Its time to live has passed.
  case timeToLive
  /// Its age is unknown: the wall clock is not synchronised, or was not when the value was accepted.
  case clockNotSynchronised

  package var description: String {
    switch self {
    case .timeToLive: "its time to live passed while the gateway did not run"
    case .clockNotSynchronised: "clock not synchronised"
    }
  }
}
