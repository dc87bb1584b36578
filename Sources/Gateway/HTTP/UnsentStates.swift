// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Routing

/// The states that one client of `GET /v1/events?states=true` has not received yet.
///
/// It holds which keys changed and no values: a client that reads late receives each key once, as
/// it stands then.
struct UnsentStates {
  /// The keys in the order of their first change.
  private var keys = Deque<KeyIndex>()
  private var known: Set<KeyIndex> = []
  /// Whether the connection to the broker changed.
  var includesBroker = false
  /// Whether a reload changed the devices.
  var includesDevices = false

  var isEmpty: Bool { keys.isEmpty && !includesBroker && !includesDevices }

  mutating func insert(_ key: KeyIndex) {
    guard known.insert(key).inserted else { return }
    keys.append(key)
  }

  /// Removes the key that has waited longest, in constant time on average.
  mutating func popFirst() -> KeyIndex? {
    guard let key = keys.popFirst() else { return nil }
    known.remove(key)
    return key
  }
}
