// Settle
// SPDX-License-Identifier: Apache-2.0

/// When a sent command counts as confirmed.
package struct Confirmation: Hashable, Sendable {
  package var within: Duration
  /// In wire units; `nil`: half a step.
  package var tolerance: Double?
  /// Attempts after the first.
  package var retries: Int

  package init(within: Duration = .seconds(5), tolerance: Double? = nil, retries: Int = 0) {
    self.within = within
    self.tolerance = tolerance
    self.retries = retries
  }
}
