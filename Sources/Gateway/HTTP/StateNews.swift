// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Routing

/// What one client of `GET /v1/events?states=true` has not been told of yet.
///
/// It holds which keys changed, not how: whoever reads late gets where they stand then, once.
struct StateNews {
  /// The keys in the order in which they changed first.
  private var keys = Deque<KeyIndex>()
  private var known: Set<KeyIndex> = []
  /// The broker came or went.
  var tellsBroker = false
  /// The devices were read anew.
  var tellsDevices = false

  var isEmpty: Bool { keys.isEmpty && !tellsBroker && !tellsDevices }

  mutating func note(_ key: KeyIndex) {
    guard known.insert(key).inserted else { return }
    keys.append(key)
  }

  /// The key that has waited for longest, in constant time on average.
  mutating func next() -> KeyIndex? {
    guard let key = keys.popFirst() else { return nil }
    known.remove(key)
    return key
  }
}
