// Settle
// SPDX-License-Identifier: Apache-2.0

/// The number of a key in one ``JournalPlan``; the file stores its name.
package struct JournalKey: Hashable, Sendable {
  /// Counts from zero.
  package let rawValue: Int32
}
