// Settle
// SPDX-License-Identifier: Apache-2.0

/// What may be wrong with a disk for a while.
package enum DiskTrouble: CaseIterable, Sendable {
  case full
  /// What was written is in memory; whether it is on the disk nobody knows.
  case failingSync
  case slow
}
