// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Momentary commands behind the first one of their key, in the order in which they were accepted.
///
/// A value replaces the one before it, so the send queue holds one command of a key. Presses of a
/// button do not replace each other: the others wait here, and the next one moves up when the first
/// has left.
struct WaitingActions {
  /// How many actions of one key may wait, the first one included.
  static let limit = 32

  /// No entry is empty.
  private var actions: [KeyIndex: [Command]] = [:]

  @inline(__always)
  var isEmpty: Bool { actions.isEmpty }

  /// The keys that have several actions, and how many of them wait behind the first.
  var counts: [(key: KeyIndex, count: Int)] { actions.map { ($0.key, $0.value.count) } }

  /// How many actions wait behind the first one of `key`.
  func count(behind key: KeyIndex) -> Int { actions.isEmpty ? 0 : actions[key]?.count ?? 0 }

  mutating func append(_ command: Command, for key: KeyIndex) {
    actions[key, default: []].append(command)
  }

  /// Removes and returns the oldest action of `key`.
  mutating func popFirst(of key: KeyIndex) -> Command? {
    guard let first = actions[key]?.removeFirst() else { return nil }
    if actions[key]?.isEmpty == true { actions[key] = nil }
    return first
  }
}
