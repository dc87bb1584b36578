// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What one client of `GET /v1/events?states=true` has not been told of yet.
///
/// It holds which keys changed, not how: whoever reads late gets where they stand then, once.
struct StateNews {
  /// The keys in the order in which they changed first; those before `taken` have been told.
  private var keys: [KeyIndex] = []
  private var taken = 0
  private var known: Set<KeyIndex> = []
  /// The broker came or went.
  var tellsBroker = false
  /// The devices were read anew.
  var tellsDevices = false

  var isEmpty: Bool { taken == keys.count && !tellsBroker && !tellsDevices }

  mutating func note(_ key: KeyIndex) {
    guard known.insert(key).inserted else { return }
    keys.append(key)
  }

  /// The key that has waited for longest, in constant time on average.
  mutating func next() -> KeyIndex? {
    guard taken < keys.count else { return nil }
    let key = keys[taken]
    known.remove(key)
    taken += 1
    if taken * 2 >= keys.count {
      keys.removeFirst(taken)
      taken = 0
    }
    return key
  }
}
