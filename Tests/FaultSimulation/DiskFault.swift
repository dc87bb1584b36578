// Settle
// SPDX-License-Identifier: Apache-2.0

/// A temporary fault of a disk.
package enum DiskFault: CaseIterable, Sendable {
  case full
  /// Syncs fail: written data is in memory, and may or may not be on the disk.
  case failingSync
  case slow
}
