// Settle
// SPDX-License-Identifier: Apache-2.0

package struct LaneConfiguration: Hashable, Sendable {
  /// Tokens a second.
  package var rate: Double
  package var burst: Int
  package init(rate: Double, burst: Int) {
    self.rate = rate
    self.burst = burst
  }
}
