// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Values

/// Whether several values would all find room, if they were accepted one after the other.
///
/// It repeats what accepting does to the number of waiting values: a newer value replaces an older
/// one of its key, an urgent value ends those of other keys, and of keys that exclude each other
/// only the newer keeps its value.
struct AdmissionPlan {
  /// What waits of one key.
  struct Waiting {
    /// A value in its quiet period.
    var quiet = false
    /// A value past its quiet period, or about to be: a leading value is, at once.
    var ready = false
    /// Steps that wait for the device's state.
    var steps = false

    var count: Int { (quiet ? 1 : 0) + (ready ? 1 : 0) + (steps ? 1 : 0) }
    var hasValue: Bool { quiet || ready }
  }

  private let limit: Int
  private let countBefore: Int
  private var count: Int
  /// The greatest value of ``count``.
  private var peak = 0
  private var isRefused = false
  /// What would wait of the keys that the plan has touched.
  private var waiting: [KeyIndex: Waiting] = [:]

  /// - Parameters:
  ///   - count: How many values and steps wait.
  ///   - limit: How many may wait.
  init(count: Int, limit: Int) {
    self.limit = limit
    self.count = count
    countBefore = count
  }

  /// Why the values are rejected; `nil` when there is room for all.
  var refusal: ValidationError? {
    guard isRefused else { return nil }
    return .noRoomForAll(
      needed: peak - countBefore,
      free: max(limit - countBefore, 0),
      limit: limit
    )
  }

  /// Accepts a value of `key` next; `known` says what waits of a key by now.
  mutating func accept(
    _ key: KeyIndex,
    isUrgent: Bool,
    isAction: Bool = false,
    _ relations: Relations,
    _ known: (KeyIndex) -> Waiting
  ) {
    let before = waiting[key] ?? known(key)
    if isUrgent {
      for other in relations.ends { end(other, known) }
    } else if count >= limit, !before.hasValue {
      isRefused = true
    }
    let after = Waiting(quiet: !isUrgent && !isAction && before.ready, ready: true)
    count += after.count - before.count
    peak = max(peak, count)
    waiting[key] = after
    for other in relations.excluded { end(other, known) }
  }

  private mutating func end(_ key: KeyIndex, _ known: (KeyIndex) -> Waiting) {
    count -= (waiting[key] ?? known(key)).count
    waiting[key] = Waiting()
  }
}
