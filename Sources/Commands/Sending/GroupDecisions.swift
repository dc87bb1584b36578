// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Which changes of groups have been decided on: each is sent in one message, or one by one.
///
/// The first of a change's commands whose turn it is decides for all of them, so the others, which
/// are many in a large group, are not looked at again.
struct GroupDecisions {
  /// The newest change of each group's key that was decided on; changes are sent in order.
  private var newest: [KeyIndex: UInt64] = [:]

  /// Whether nothing was decided about a change, or a newer one of the same group's key.
  func isFirst(of group: KeyIndex, number: UInt64) -> Bool { number > newest[group] ?? 0 }

  mutating func decided(_ group: KeyIndex, number: UInt64) { newest[group] = number }
}
