// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a step of a reload did; see ``CommandStateMachine/continueReload(keys:at:)``.
package enum ReloadStep: Hashable, Sendable {
  /// There is room for so many keys and devices; the old definitions still count.
  case prepared(keys: Int, devices: Int)
  /// The new definitions count from now on.
  case replaced
  /// The values from before of these keys, by place, were checked.
  case migrated(Range<Int>)
  /// The reload has finished.
  case finished
}
